"""Site configuration: YAML to typed structs."""
