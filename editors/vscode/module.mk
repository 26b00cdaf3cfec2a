# Not part of all: it needs npm, which fetches the compiler.
.PHONY: vscode
vscode: $(addprefix $(O)/clients/,$(filter typescript/src/%,$(clients_files)))
	$(call say,VSIX,$(O)/vscode/gpu-agent.vsix)
	$(Q)editors/vscode/build $(O)/clients/typescript/src $(O)/vscode
