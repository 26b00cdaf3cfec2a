# The debug adapter, by a client of our own and by Microsoft's.
system_tests += tests/dap/test_dap.py
system_tests += tests/dap/test_dap_control.py
system_tests += tests/dap/test_dap_exceptions.py
system_tests += tests/dap/test_dap_socket.py
system_tests += tests/dap/test_dap_core.py
system_tests += tests/dap/test_dap_host.py
system_tests += tests/dap/test_dap_others.py
system_tests += tests/dap/test_dap_cuda.py
system_tests += tests/dap/test_dap_waves.py
system_tests += tests/dap/test_dap_variables.py
system_tests += tests/dap/test_dap_schema.py
system_tests += tests/dap/test_dap_sources.py
system_tests += tests/dap/test_testsupport.py
