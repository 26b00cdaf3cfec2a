# Editors as clients of the debug adapter.
system_tests += tests/editors/test_emacs.py
system_tests += tests/editors/test_nvim.py
system_tests += tests/editors/test_vscode.py
system_tests += tests/editors/test_vsix.py
system_tests += tests/editors/test_vscode_cores.py
system_tests += tests/editors/test_vscode_view.py
system_tests += tests/editors/test_vscode_records.py
system_tests += tests/editors/test_vscode_compare.py
system_tests += tests/editors/test_vscode_watch.py
system_tests += tests/editors/test_vscode_running.py
system_tests += tests/editors/test_vscode_lanes.py
