/* SPDX-License-Identifier: MIT */
/*
 * One rank of a sum with RCCL: a process and a GPU for each.  RANK, WORLD_SIZE and LOCAL_RANK are as launchers set
 * them.
 *
 * usage: rocm_rank FILE
 * Rank 0 writes the id by which all find each other to FILE; the others are started when it is there.  Prints "ready";
 * then, for each line of standard input, "started" when the GPU was told, "ok" and a sum of the bytes when it is done.
 * The few calls are declared here.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct id {
	char bytes[128];
};
int hipMalloc(void **ret, size_t size);
int hipMemcpy(void *to, const void *from, size_t size, int kind);
int hipSetDevice(int device);
int hipDeviceSynchronize(void);
int ncclGetUniqueId(struct id *ret);
int ncclCommInitRank(void **ret, int ranks, struct id id, int rank);
int ncclAllReduce(const void *from, void *to, size_t n, int type, int op, void *comm, void *stream);
enum { HOST_TO_DEVICE = 1, DEVICE_TO_HOST = 2 };
enum { TYPE_FLOAT = 7, OP_SUM = 0, WORDS = 1 << 18 };

static uint32_t words[WORDS];

static void check(int r, const char *what)
{
	if (!r)
		return;
	printf("error %s %d\n", what, r);
	exit(1);
}

static int number(const char *name)
{
	const char *text = getenv(name);

	check(!text, name);
	return atoi(text);
}

/* Rank 0 has it from the library. */
static struct id meet(int rank, const char *path)
{
	char new[4096];
	struct id id;
	FILE *f;

	if (rank) {
		f = fopen(path, "r");
		check(!f || fread(&id, sizeof(id), 1, f) != 1 || fclose(f), path);
		return id;
	}
	check(ncclGetUniqueId(&id), "ncclGetUniqueId");
	snprintf(new, sizeof(new), "%s.new", path);
	f = fopen(new, "w");
	check(!f || fwrite(&id, sizeof(id), 1, f) != 1 || fclose(f) || rename(new, path), path);
	return id;
}

static uint64_t sum(void *memory, void *comm)
{
	uint64_t all = 0;

	check(ncclAllReduce(memory, memory, WORDS, TYPE_FLOAT, OP_SUM, comm, NULL), "ncclAllReduce");
	printf("started\n");
	fflush(stdout);
	check(hipDeviceSynchronize(), "hipDeviceSynchronize");
	check(hipMemcpy(words, memory, sizeof(words), DEVICE_TO_HOST), "from the GPU");
	for (uint32_t i = 0; i < WORDS; i++)
		all = all * 31 + words[i];
	return all;
}

int main(int argc, char **argv)
{
	int rank = number("RANK");
	char line[16];
	void *memory, *comm;

	if (argc != 2)
		return 2;
	check(hipSetDevice(number("LOCAL_RANK")), "hipSetDevice");
	check(ncclCommInitRank(&comm, number("WORLD_SIZE"), meet(rank, argv[1]), rank), "ncclCommInitRank");
	for (uint32_t i = 0; i < WORDS; i++)
		words[i] = (i + (uint32_t)rank) * 2654435761u;
	check(hipMalloc(&memory, sizeof(words)), "hipMalloc");
	check(hipMemcpy(memory, words, sizeof(words), HOST_TO_DEVICE), "to the GPU");
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		printf("ok %016llx\n", (unsigned long long)sum(memory, comm));
		fflush(stdout);
	}
	/* Its destructors wait for what a test has taken away. */
	_exit(0);
}
