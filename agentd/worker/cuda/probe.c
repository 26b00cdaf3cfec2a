/* SPDX-License-Identifier: MIT */
/* CUDA processes seen without touching them, and what attaching to one needs. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agentd/worker/cuda/cuda.h"
#include "agentd/worker/process/network.h"
#include "agentd/worker/process/own_workers.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"

#define ENVIRONMENT_MAX ((size_t)4 << 20)

static int read_maps(pid_t pid, char **ret, size_t *ret_size)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	return fd_read_file(path, CUDBGSHIM_MAPS_MAX, ret, ret_size);
}

static bool maps_have(const char *maps, size_t size, const char *stem)
{
	struct cudbgshim_maps at = { maps, size, 0 };
	struct cudbgshim_map map;

	while (cudbgshim_maps_next(&at, &map))
		if (memmem(map.name, map.name_size, stem, strlen(stem)))
			return true;
	return false;
}

int cuda_maps_use(int maps_fd)
{
	auto_free char *maps = NULL;
	struct cudbgshim_library library;
	size_t size;

	if (maps_fd < 0 || cuda_read_again(maps_fd, CUDBGSHIM_MAPS_MAX, &maps, &size) < 0)
		return -1;
	return cudbgshim_find_libcuda(maps, size, 0, &library) == 0;
}

bool cuda_uses_nodes(pid_t pid)
{
	char path[32], link[sizeof(CUDA_CONTROL_NODE) + 1];
	struct dirent *e;
	bool found = false;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	while (dir && !found && (e = readdir(dir))) {
		ssize_t n = readlinkat(dirfd(dir), e->d_name, link, sizeof(link));

		found = n == sizeof(CUDA_CONTROL_NODE) - 1 && !memcmp(link, CUDA_CONTROL_NODE, (size_t)n);
	}
	if (dir)
		closedir(dir);
	return found;
}

/* ------------------------------------------------------------------ doctor ------------------- */

struct sheet {
	struct rpc_arena *arena;
	const struct worker_options *o;
	const struct access_target *facts;
	struct rpc_check *checks;
	size_t n, capacity;
	char *maps;
	size_t maps_size;
	int mem_fd;
	struct cudbgshim_library library;
	struct cudbgshim_symbols symbols;
	struct cudbgshim_memory memory;
};

static void put(struct sheet *s, const char *name, enum rpc_verdict verdict, const char *detail,
		const char *fix)
{
	if (s->n < s->capacity && detail)
		s->checks[s->n++] = (struct rpc_check){
			.name = name, .verdict = verdict, .detail = detail, .fix = fix
		};
}

static bool check_library(struct sheet *s)
{
	int r = read_maps(s->facts->pid, &s->maps, &s->maps_size);

	if (r < 0) {
		put(s, "cuda_library", RPC_VERDICT_UNKNOWN, "its list of mappings may not be read",
		    NULL);
		return false;
	}
	if (cudbgshim_find_libcuda(s->maps, s->maps_size, 0, &s->library) < 0) {
		put(s, "cuda_library", RPC_VERDICT_FAIL, "it has not loaded libcuda",
		    "try again when the program has initialised CUDA");
		return false;
	}
	put(s, "cuda_library", RPC_VERDICT_PASS,
	    rpc_arena_printf(s->arena, "it has loaded %s", s->library.path), NULL);
	return true;
}

/* Find the copy of the driver that attaching would take: a library of stubs may lie beside it. */
static bool find_driver(struct sheet *s, struct cudbgshim_symbols_error *why)
{
	struct cudbgshim_library library;

	for (size_t n = 0; cudbgshim_find_libcuda(s->maps, s->maps_size, n, &library) == 0; n++) {
		s->library = library;
		if (cudbgshim_symbols_read(&s->memory, library.base, &s->symbols, why) < 0)
			continue;
		if (s->symbols.addr[CUDBGSHIM_SYM_IPC_FLAG])
			return true;
		why->what = "it has no cudbgIpcFlag";
	}
	return false;
}

static bool check_driver(struct sheet *s)
{
	struct cudbgshim_symbols_error why = { .what = "" };
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)s->facts->pid);
	s->mem_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (s->mem_fd < 0) {
		put(s, "cuda_driver", RPC_VERDICT_UNKNOWN, "its memory may not be read", NULL);
		return false;
	}
	s->memory = cudbgshim_memory_from_fd(s->mem_fd);
	if (!find_driver(s, &why)) {
		put(s, "cuda_driver", RPC_VERDICT_FAIL,
		    rpc_arena_printf(s->arena, "its libcuda is not understood: %s", why.what),
		    "the process must use NVIDIA's own libcuda.so");
		return false;
	}
	if (!s->symbols.addr[CUDBGSHIM_SYM_USE_EXTERNAL_DEBUGGER]) {
		put(s, "cuda_driver", RPC_VERDICT_FAIL, "its driver has no unified debugger",
		    "the process needs an NVIDIA driver of release 520 or later");
		return false;
	}
	put(s, "cuda_driver", RPC_VERDICT_PASS,
	    s->symbols.addr[CUDBGSHIM_SYM_ATTACH_FD] ?
		    "its driver has the unified debugger and attaches through a descriptor" :
		    "its driver has the unified debugger; one call in the process starts it", NULL);
	return true;
}

static bool read_flag(const struct sheet *s, enum cudbgshim_symbol symbol, uint32_t *ret)
{
	uint64_t at = s->symbols.addr[symbol];

	*ret = 0;
	return !at || s->memory.read(s->memory.ctx, at, ret, sizeof(*ret)) == 0;
}

static void check_debugger(struct sheet *s, bool is_used)
{
	const char *session = own_workers_find(s->arena, 0, s->facts->pid);

	if (session)
		put(s, "cuda_debugger", RPC_VERDICT_PASS,
		    rpc_arena_printf(s->arena, "session %s uses its CUDA driver: attaching joins",
				     session),
		    NULL);
	else if (is_used)
		put(s, "cuda_debugger", RPC_VERDICT_FAIL,
		    "a debugger or profiler uses its CUDA driver", "let it detach");
	else
		put(s, "cuda_debugger", RPC_VERDICT_PASS, "no debugger uses its CUDA driver", NULL);
}

static void check_flags(struct sheet *s)
{
	uint32_t engaged, initialized, preemption, fd;

	if (!read_flag(s, CUDBGSHIM_SYM_USE_EXTERNAL_DEBUGGER, &engaged) ||
	    !read_flag(s, CUDBGSHIM_SYM_INITIALIZED, &initialized) ||
	    !read_flag(s, CUDBGSHIM_SYM_PREEMPTION, &preemption) ||
	    !read_flag(s, CUDBGSHIM_SYM_ATTACH_FD, &fd)) {
		put(s, "cuda_debugger", RPC_VERDICT_UNKNOWN,
		    "the driver's variables are not readable", NULL);
		return;
	}
	check_debugger(s, engaged || initialized);
	if (preemption)
		put(s, "cuda_preemption", RPC_VERDICT_FAIL, "software preemption is on",
		    "start the program without CUDA_DEBUGGER_SOFTWARE_PREEMPTION");
	if (s->symbols.addr[CUDBGSHIM_SYM_ATTACH_FD] && (int32_t)fd < 0)
		put(s, "cuda_init", RPC_VERDICT_UNKNOWN,
		    "it has not called cuInit; GPU state appears when it does", NULL);
}

/*
 * Look for the engine.  In the target it lies beside libcuda or where the loader looks; the agent's
 * own likewise.
 */
static void check_engine(struct sheet *s)
{
	char *slash = strrchr(s->library.path, '/');
	char path[CUDBGSHIM_PATH_MAX + 64];
	struct stat st;

	if (maps_have(s->maps, s->maps_size, "/libcudadebugger.so")) {
		put(s, "cuda_engine", RPC_VERDICT_PASS, "it has loaded libcudadebugger", NULL);
		return;
	}
	snprintf(path, sizeof(path), "/proc/%d/root%.*s/libcudadebugger.so.1", (int)s->facts->pid,
		 slash ? (int)(slash - s->library.path) : 0, s->library.path);
	if (stat(path, &st) == 0)
		put(s, "cuda_engine", RPC_VERDICT_PASS, "libcudadebugger lies beside its libcuda",
		    NULL);
	else
		put(s, "cuda_engine", RPC_VERDICT_UNKNOWN,
		    "libcudadebugger.so.1 does not lie beside its libcuda",
		    "containers often lack it: mount it beside libcuda.so.1, of the same driver");
}

static void check_own_library(struct sheet *s)
{
	const char *path = s->o->cuda_library;

	if (!strchr(path, '/'))
		put(s, "cuda_own_library", RPC_VERDICT_UNKNOWN,
		    rpc_arena_printf(s->arena, "the agent looks for %s when it attaches", path),
		    NULL);
	else if (access(path, R_OK) == 0)
		put(s, "cuda_own_library", RPC_VERDICT_PASS,
		    rpc_arena_printf(s->arena, "the agent uses %s", path), NULL);
	else
		put(s, "cuda_own_library", RPC_VERDICT_FAIL,
		    rpc_arena_printf(s->arena, "%s: %s", path, strerror(errno)),
		    "install NVIDIA's driver libraries; check the [cuda] section of agentd.conf");
}

static bool is_same_namespace(pid_t pid, const char *name, bool *ret)
{
	char ours[32], theirs[40];
	struct stat a, b;

	snprintf(ours, sizeof(ours), "/proc/self/ns/%s", name);
	snprintf(theirs, sizeof(theirs), "/proc/%d/ns/%s", (int)pid, name);
	if (stat(ours, &a) < 0 || stat(theirs, &b) < 0)
		return false;
	*ret = a.st_ino == b.st_ino && a.st_dev == b.st_dev;
	return true;
}

static void check_namespaces(struct sheet *s)
{
	bool same;

	if (network_reaches(s->facts->pid, &same) < 0)
		put(s, "cuda_network", RPC_VERDICT_UNKNOWN, "its namespaces may not be looked at",
		    NULL);
	else if (same)
		put(s, "cuda_network", RPC_VERDICT_PASS, "its debug engine can be connected to",
		    NULL);
	else
		put(s, "cuda_network", RPC_VERDICT_FAIL,
		    "its debug engine listens in another network namespace",
		    "run the container with the host's network, or the agent inside it; gpu-agent-connect(8) says more");
	put(s, "cuda_local_users", RPC_VERDICT_PASS,
	    "while attached, every local user of its network namespace can connect to its engine", NULL);
	if (is_same_namespace(s->facts->pid, "mnt", &same) && !same)
		put(s, "cuda_mounts", RPC_VERDICT_PASS,
		    "it has its own mount namespace; its libraries are read in its memory", NULL);
}

/* Without the node the driver would try to make one, which the sandbox forbids. */
bool cuda_has_nodes(void)
{
	struct stat st;

	return stat(CUDA_CONTROL_NODE, &st) == 0 && S_ISCHR(st.st_mode);
}

static void check_nodes(struct sheet *s)
{
	if (cuda_has_nodes())
		put(s, "cuda_device", RPC_VERDICT_PASS, CUDA_CONTROL_NODE " is there", NULL);
	else
		put(s, "cuda_device",
		    cuda_uses_nodes(s->facts->pid) ? RPC_VERDICT_FAIL : RPC_VERDICT_UNKNOWN,
		    "there is no " CUDA_CONTROL_NODE " here", CUDA_NODES_HINT);
}

/* The process's own environment and mounts decide. */
bool cuda_is_near_mps(int environ_fd, int root_fd, char *ret_path, size_t size)
{
	static const char name[] = "CUDA_MPS_PIPE_DIRECTORY=";
	const char *where = "/tmp/nvidia-mps";
	auto_free char *environment = NULL;
	struct stat st;
	size_t n = 0;

	if (environ_fd >= 0 && cuda_read_again(environ_fd, ENVIRONMENT_MAX, &environment, &n) == 0)
		for (const char *p = environment; p < environment + n; p += strlen(p) + 1)
			if (strncmp(p, name, sizeof(name) - 1) == 0)
				where = p + sizeof(name) - 1;
	if (snprintf(ret_path, size, "%s/control", where) >= (int)size || root_fd < 0)
		return false;
	/* The path is one of the target's, and begins at its root. */
	where = ret_path + strspn(ret_path, "/");
	return fstatat(root_fd, where, &st, 0) == 0;
}

static int open_of(pid_t pid, const char *name, int flags)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return open(path, flags | O_RDONLY | O_CLOEXEC);
}

static void check_mps(struct sheet *s)
{
	auto_close int environ_fd = open_of(s->facts->pid, "environ", 0);
	auto_close int root_fd = open_of(s->facts->pid, "root", O_PATH | O_DIRECTORY);
	char path[1024];

	if (cuda_is_near_mps(environ_fd, root_fd, path, sizeof(path)))
		put(s, "cuda_mps", RPC_VERDICT_UNKNOWN,
		    rpc_arena_printf(s->arena,
				     "an MPS daemon runs (%s); its clients cannot be attached to",
				     path),
		    "start the program without MPS");
	else
		put(s, "cuda_mps", RPC_VERDICT_PASS, "no MPS daemon where it would look for one",
		    NULL);
}

int cuda_checks(const struct worker_options *o, const struct access_target *facts,
		struct rpc_arena *a, struct rpc_check *checks, size_t capacity, size_t *ret_n)
{
	struct sheet s = { .arena = a, .o = o, .facts = facts, .checks = checks,
			   .capacity = capacity, .mem_fd = -1 };

	bool uses = check_library(&s);

	if (uses) {
		if (check_driver(&s)) {
			check_flags(&s);
			check_engine(&s);
		}
		check_own_library(&s);
		check_nodes(&s);
		check_namespaces(&s);
		check_mps(&s);
	}
	if (s.mem_fd >= 0)
		close(s.mem_fd);
	free(s.maps);
	*ret_n = s.n;
	return uses ? 0 : TARGET_NOT_MINE;
}
