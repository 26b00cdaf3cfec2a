# Unchanged JSON-RPC clients of other people on the real socket.
system_tests += tests/clients/test_clients.py
