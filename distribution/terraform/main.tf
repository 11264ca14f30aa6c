# mlflow-serverless as a Terraform module: one CloudFormation stack of the template that `make package` uploaded.
# The stack owns table, buckets and key, which stay when it is destroyed.

terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.0"
    }
  }
}

variable "template_url" {
  description = "Address that `make package` printed; its bucket is in the provider's region"
  type        = string
}

variable "name" {
  description = "Name of the stack; resources begin with it"
  type        = string
  default     = "mlflow"
}

variable "parameters" {
  description = "Parameters of template.yaml by name; Authentication is required"
  type        = map(string)

  validation {
    condition     = contains(keys(var.parameters), "Authentication")
    error_message = "Authentication is required: basic, oidc, iam or none."
  }
}

variable "tags" {
  description = "Tags of all resources"
  type        = map(string)
  default     = {}
}

resource "aws_cloudformation_stack" "mlflow" {
  name         = var.name
  template_url = var.template_url
  parameters   = var.parameters
  tags         = var.tags
  capabilities = ["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"]
}

output "outputs" {
  description = "Outputs of the stack by name, such as ApiUrl, UiUrl and TableName"
  value       = aws_cloudformation_stack.mlflow.outputs
}
