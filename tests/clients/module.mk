# Unchanged JSON-RPC clients of other people on the real socket.
system_tests += tests/clients/test_clients.py
# Those that are generated from the schema.
system_tests += tests/clients/test_python.py tests/clients/test_typescript.py
# The same as people install them.
system_tests += tests/clients/test_packages.py
# What training scripts have of it: programs that stand still.
system_tests += tests/clients/test_watchdog.py tests/clients/test_watchdog_launch.py tests/clients/test_watchdog_adapters.py
