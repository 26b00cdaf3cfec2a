/* SPDX-License-Identifier: MIT */
#include "ctl/nccl/place.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"
#include "rpc_gen.h"

#define DEFAULT_ADDRESS "localhost:28028"
/* The kernel allows three quarters of the largest stack for arguments and environment, which is 6 MiB by default. */
#define ENVIRON_MAX ((size_t)8 << 20)
#define STATUS_MAX  ((size_t)64 << 10)
#define NSPID	    "\nNSpid:"

/* ------------------------------------------------------------------ addresses ---------------- */

static bool add_v4(struct nccl_address *a, const char *text, uint16_t port)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&a->list[a->n];

	if (inet_pton(AF_INET, text, &in->sin_addr) != 1)
		return false;
	in->sin_family = AF_INET;
	in->sin_port = htons(port);
	a->n++;
	return true;
}

static bool add_v6(struct nccl_address *a, const char *text, uint16_t port)
{
	struct sockaddr_in6 *in = (struct sockaddr_in6 *)&a->list[a->n];

	if (inet_pton(AF_INET6, text, &in->sin6_addr) != 1)
		return false;
	in->sin6_family = AF_INET6;
	in->sin6_port = htons(port);
	a->n++;
	return true;
}

int nccl_address_parse(const char *text, size_t size, struct nccl_address *ret)
{
	char host[NCCL_TEXT_MAX], *colon;
	uint64_t port;
	size_t n;

	memset(ret, 0, sizeof(*ret));
	if (size >= sizeof(host) || memchr(text, 0, size))
		return -EINVAL;
	memcpy(host, text, size);
	host[size] = 0;
	colon = strrchr(host, ':');
	if (!colon || str_to_u64(colon + 1, 1, UINT16_MAX, &port) < 0)
		return -EINVAL;
	memcpy(ret->text, host, size + 1);
	*colon = 0;
	n = (size_t)(colon - host);
	if (!strcmp(host, "localhost"))
		return add_v4(ret, "127.0.0.1", (uint16_t)port) && add_v6(ret, "::1", (uint16_t)port) ? 0 : -EINVAL;
	if (n > 2 && host[0] == '[' && host[n - 1] == ']') {
		host[n - 1] = 0;
		return add_v6(ret, host + 1, (uint16_t)port) ? 0 : -EINVAL;
	}
	return add_v4(ret, host, (uint16_t)port) ? 0 : -EINVAL;
}

/* ------------------------------------------------------------------ what /proc says ---------- */

const char *nccl_environ_find(const char *text, size_t size, const char *name, size_t *ret_size)
{
	const size_t n = strlen(name);

	for (size_t at = 0; at < size;) {
		size_t length = strnlen(text + at, size - at);

		if (length > n && !memcmp(text + at, name, n) && text[at + n] == '=') {
			*ret_size = length - n - 1;
			return text + at + n + 1;
		}
		at += length + 1;
	}
	return NULL;
}

/* The line has a number for each namespace, the innermost one last. */
int nccl_status_pid(const char *text, size_t size, uint32_t *ret)
{
	const char *line = memmem(text, size, NSPID, strlen(NSPID));
	const char *end = line ? memchr(line + 1, '\n', size - (size_t)(line + 1 - text)) : NULL;
	uint64_t value = 0;
	char number[11];
	size_t n = 0;

	while (end && end > line && n < sizeof(number) - 1 && end[-1] >= '0' && end[-1] <= '9') {
		end--;
		n++;
	}
	if (!n)
		return -EINVAL;
	memcpy(number, end, n);
	number[n] = 0;
	if (str_to_u64(number, 1, UINT32_MAX, &value) < 0)
		return -EINVAL;
	*ret = (uint32_t)value;
	return 0;
}

static int unreadable(struct agent_err *err, int e, const char *what)
{
	return agent_err_set(err, RPC_ERROR_FAILED, -e, "ask NCCL", NULL, "%s of the process cannot be read (%s)", what,
			     strerror(-e));
}

static int find_pid(int proc_fd, uint32_t *ret, struct agent_err *err)
{
	auto_free char *text = NULL;
	size_t size;
	int r = fd_read_file_at(proc_fd, "status", STATUS_MAX, &text, &size);

	if (r == 0)
		r = nccl_status_pid(text, size, ret);
	return r < 0 ? unreadable(err, r, "the status") : 0;
}

static int find_address(int proc_fd, struct nccl_address *ret, struct agent_err *err)
{
	auto_free char *text = NULL;
	const char *value = DEFAULT_ADDRESS, *found;
	size_t size, n = strlen(value), found_size;
	int r = fd_read_file_at(proc_fd, "environ", ENVIRON_MAX, &text, &size);

	if (r < 0)
		return unreadable(err, r, "the environment");
	found = nccl_environ_find(text, size, "NCCL_RAS_ENABLE", &found_size);
	if (found && found_size == 1 && *found == '0')
		return agent_err_set(err, RPC_ERROR_FAILED, 0, "ask NCCL", NULL, "NCCL_RAS_ENABLE=0 turns it off");
	found = nccl_environ_find(text, size, "NCCL_RAS_ADDR", &found_size);
	if (found) {
		value = found;
		n = found_size;
	}
	if (nccl_address_parse(value, n, ret) < 0)
		return agent_err_set(err, RPC_ERROR_FAILED, EINVAL, "ask NCCL", NULL,
				     "NCCL_RAS_ADDR of the process is not localhost or an address, and a port; names are not looked up");
	return 0;
}

/* @param ret_fd  -1 where the process has the network of this program. */
static int find_network(int proc_fd, int *ret_fd, struct agent_err *err)
{
	char own[64], theirs[64];
	ssize_t n = readlink("/proc/self/ns/net", own, sizeof(own)), m = readlinkat(proc_fd, "ns/net", theirs, sizeof(theirs));

	*ret_fd = -1;
	if (n < 0 || m < 0)
		return unreadable(err, -errno, "the network namespace");
	if (n == m && !memcmp(own, theirs, (size_t)n))
		return 0;
	*ret_fd = openat(proc_fd, "ns/net", O_RDONLY | O_CLOEXEC);
	return *ret_fd < 0 ? unreadable(err, -errno, "the network namespace") : 0;
}

int nccl_place_find(int proc_fd, struct nccl_place *ret, struct agent_err *err)
{
	int r;

	*ret = (struct nccl_place){ .net_fd = -1 };
	r = find_pid(proc_fd, &ret->pid, err);
	if (r == 0)
		r = find_address(proc_fd, &ret->address, err);
	return r == 0 ? find_network(proc_fd, &ret->net_fd, err) : r;
}

void nccl_place_deinit(struct nccl_place *p)
{
	if (p->net_fd >= 0)
		close(p->net_fd);
	p->net_fd = -1;
}
