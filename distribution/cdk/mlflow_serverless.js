// mlflow-serverless as a construct of the AWS CDK: one nested stack of the template that `make package` uploaded.
"use strict";

const { CfnStack } = require("aws-cdk-lib");
const { Construct } = require("constructs");

/**
 * Properties: `templateUrl` is the address that `make package` printed, whose bucket is in the stack's region;
 * `parameters` are those of template.yaml by name, of which Authentication is required.
 */
class MlflowServerless extends Construct {
  constructor(scope, id, { templateUrl, parameters }) {
    super(scope, id);
    if (!templateUrl || !parameters || !parameters.Authentication) {
      throw new Error("templateUrl and parameters.Authentication (basic, oidc, iam or none) are required");
    }
    this.stack = new CfnStack(this, "Stack", { templateUrl, parameters });
  }

  /** Returns an output of the stack, such as ApiUrl, UiUrl or TableName, for use in other resources. */
  output(name) {
    return this.stack.getAtt(`Outputs.${name}`).toString();
  }
}

module.exports = { MlflowServerless };
