# filled in by the module
