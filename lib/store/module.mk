# Records of exceptions and snapshots on disk (docs/STORE.md).
archives += store
store_src := $(addprefix lib/store/,add.c index.c match.c meta.c name.c quota.c scan.c store.c)
