/* SPDX-License-Identifier: MIT */
/*
 * A program on AMD's runtime library alone: loads a code object, launches a kernel of it, waits.
 * Unlike HIP it takes a code object of any GPU that the runtime knows.
 *
 * usage: rocm_hsa CODE_OBJECT KERNEL
 * Each line of standard input is a step: "run N" launches so often, each time waiting for the end;
 * "launch" once, and tells what the packet is before it waits, "launch cut" with a smaller grid.  All print "ok STEP" behind it.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <hsa/hsa.h>

#define RING_PACKETS 64
/* Three by two by two workgroups. */
static const uint16_t group_size[3] = { 64, 4, 1 };
static const uint32_t grid_size[3] = { 192, 8, 2 };
/* As many workgroups, of which the last ones along two axes are cut off. */
static const uint32_t cut_grid_size[3] = { 150, 7, 2 };

static hsa_queue_t *queue;
static hsa_signal_t done;
static void *arguments;
static uint64_t kernel;
static uint32_t private_size, lds_size, arguments_size;

static void check(hsa_status_t r, const char *what)
{
	if (r == HSA_STATUS_SUCCESS)
		return;
	printf("error %s %#x\n", what, (unsigned)r);
	exit(1);
}

#define CHECK(call, ...) check(hsa_##call(__VA_ARGS__), #call)

static hsa_status_t take_gpu(hsa_agent_t agent, void *ret)
{
	hsa_device_type_t type;

	CHECK(agent_get_info, agent, HSA_AGENT_INFO_DEVICE, &type);
	if (type != HSA_DEVICE_TYPE_GPU)
		return HSA_STATUS_SUCCESS;
	*(hsa_agent_t *)ret = agent;
	return HSA_STATUS_INFO_BREAK;
}

static hsa_status_t take_arguments(hsa_region_t region, void *ret)
{
	hsa_region_global_flag_t flags = 0;
	hsa_region_segment_t segment;

	CHECK(region_get_info, region, HSA_REGION_INFO_SEGMENT, &segment);
	if (segment == HSA_REGION_SEGMENT_GLOBAL)
		CHECK(region_get_info, region, HSA_REGION_INFO_GLOBAL_FLAGS, &flags);
	if (!(flags & HSA_REGION_GLOBAL_FLAG_KERNARG))
		return HSA_STATUS_SUCCESS;
	*(hsa_region_t *)ret = region;
	return HSA_STATUS_INFO_BREAK;
}

static hsa_executable_t load(hsa_agent_t gpu, hsa_code_object_reader_t reader)
{
	hsa_executable_t executable;

	CHECK(executable_create_alt, HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, NULL,
	      &executable);
	CHECK(executable_load_agent_code_object, executable, gpu, reader, NULL, NULL);
	CHECK(executable_freeze, executable, NULL);
	return executable;
}

/* The same code object twice, as a file and as a piece of memory: the kernel is the file's. */
static void load_both(hsa_agent_t gpu, const char *path, const char *name)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	hsa_code_object_reader_t file, memory;
	hsa_executable_symbol_t symbol;
	hsa_executable_t executable;
	char mangled[256];
	struct stat st;
	void *bytes;

	if (fd < 0 || fstat(fd, &st) < 0)
		check(HSA_STATUS_ERROR, path);
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	CHECK(code_object_reader_create_from_file, fd, &file);
	CHECK(code_object_reader_create_from_memory, bytes, (size_t)st.st_size, &memory);
	executable = load(gpu, file);
	load(gpu, memory);
	snprintf(mangled, sizeof(mangled), "%s.kd", name);
	CHECK(executable_get_symbol_by_name, executable, mangled, &gpu, &symbol);
	CHECK(executable_symbol_get_info, symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, &kernel);
	CHECK(executable_symbol_get_info, symbol,
	      HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE, &private_size);
	CHECK(executable_symbol_get_info, symbol,
	      HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE, &lds_size);
	CHECK(executable_symbol_get_info, symbol,
	      HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE, &arguments_size);
}

static void launch(int say, const uint32_t grid[3])
{
	uint64_t id = hsa_queue_add_write_index_relaxed(queue, 1);
	hsa_kernel_dispatch_packet_t *p = queue->base_address;
	const uint16_t header = HSA_PACKET_TYPE_KERNEL_DISPATCH |
				HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_ACQUIRE_FENCE_SCOPE |
				HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_RELEASE_FENCE_SCOPE;

	p += id % queue->size;
	p->setup = 3 << HSA_KERNEL_DISPATCH_PACKET_SETUP_DIMENSIONS;
	p->workgroup_size_x = group_size[0];
	p->workgroup_size_y = group_size[1];
	p->workgroup_size_z = group_size[2];
	p->grid_size_x = grid[0];
	p->grid_size_y = grid[1];
	p->grid_size_z = grid[2];
	p->private_segment_size = private_size;
	p->group_segment_size = lds_size;
	p->kernel_object = kernel;
	p->kernarg_address = arguments;
	p->completion_signal = done;
	hsa_signal_store_relaxed(done, 1);
	if (say) {
		printf("launched %" PRIu64 " ring %p kernel %#" PRIx64 " arguments %p\n", id,
		       queue->base_address, kernel, arguments);
		fflush(stdout);
	}
	__atomic_store_n(&p->header, header, __ATOMIC_RELEASE);
	hsa_signal_store_screlease(queue->doorbell_signal, (hsa_signal_value_t)id);
	while (hsa_signal_wait_scacquire(done, HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX, HSA_WAIT_STATE_BLOCKED))
		;
}

int main(int argc, char **argv)
{
	hsa_region_t region = { 0 };
	hsa_agent_t gpu = { 0 };
	char line[64];

	if (argc != 3)
		return 2;
	CHECK(init);
	hsa_iterate_agents(take_gpu, &gpu);
	if (!gpu.handle)
		check(HSA_STATUS_ERROR_INVALID_AGENT, "no GPU");
	CHECK(queue_create, gpu, RING_PACKETS, HSA_QUEUE_TYPE_SINGLE, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue);
	load_both(gpu, argv[1], argv[2]);
	hsa_agent_iterate_regions(gpu, take_arguments, &region);
	CHECK(memory_allocate, region, arguments_size > 64 ? arguments_size : 64, &arguments);
	memset(arguments, 0, arguments_size);
	CHECK(signal_create, 1, 0, NULL, &done);
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		long n = !strncmp(line, "run ", 4) ? atol(line + 4) : 0;

		for (long i = 0; i < n; i++)
			launch(0, grid_size);
		if (!n)
			launch(1, strcmp(line, "launch cut\n") ? grid_size : cut_grid_size);
		printf("ok %s", line);
		fflush(stdout);
	}
	CHECK(shut_down);
	return 0;
}
