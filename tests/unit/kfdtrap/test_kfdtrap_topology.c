/* SPDX-License-Identifier: MIT */
/* Topology and process lists over a directory tree that looks like /sys/class/kfd/kfd. */
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "libkfdtrap/include/kfdtrap.h"
#include "libkfdtrap/src/sysfs.h"
#include "libkfdtrap/src/topology.h"
#include "testlib.h"

#define GPU_PROPERTIES                                                                             \
	"cpu_cores_count 0\nsimd_count 304\nmax_waves_per_simd 8\nnum_xcc 2\narray_count 32\n"     \
	"gfx_target_version 90402\nvendor_id 4098\ndevice_id 29857\ndomain 1\n"                    \
	"capability 4158669440\ndebug_prop 1511\nlds_size_in_kb 64\nwave_front_size 64\n"          \
	"cwsr_size 26279936\nctl_stack_size 28672\nunique_id 12345678901234567890\n"

static char root[64];

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static void tree_remove(void)
{
	if (root[0])
		nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	root[0] = '\0';
}

/* A file below the root, directories included. */
static void put(const char *path, const char *text)
{
	char full[256];
	FILE *f;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		mkdir(full, 0755);
		*p = '/';
	}
	f = fopen(full, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fputs(text, f);
	fclose(f);
}

static void drop(const char *path)
{
	char full[256];

	snprintf(full, sizeof(full), "%s/%s", root, path);
	TEST_EQ(unlink(full), 0);
}

static void put_gpu(unsigned int node, const char *gpu_id, const char *location_and_minor)
{
	char path[64], text[1024];

	snprintf(path, sizeof(path), "topology/nodes/%u/gpu_id", node);
	put(path, gpu_id);
	snprintf(path, sizeof(path), "topology/nodes/%u/name", node);
	put(path, "aqua\x80vanjaram \n");
	snprintf(path, sizeof(path), "topology/nodes/%u/properties", node);
	snprintf(text, sizeof(text), GPU_PROPERTIES "%s", location_and_minor);
	put(path, text);
	snprintf(path, sizeof(path), "topology/nodes/%u/mem_banks/0/properties", node);
	put(path, "heap_type 1\nsize_in_bytes 206141652992\nflags 0\nwidth 8192\n");
	snprintf(path, sizeof(path), "topology/nodes/%u/mem_banks/1/properties", node);
	put(path, "heap_type 2\nsize_in_bytes 1000\n");
}

/* One CPU and one GPU.  What a failed test left behind goes when the next begins, or at exit. */
static void tree_create(void)
{
	static bool registered;

	if (!registered)
		registered = atexit(tree_remove) == 0;
	tree_remove();
	snprintf(root, sizeof(root), "/tmp/test_kfdtrap.XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(root));
	put("topology/generation_id", "2\n");
	put("topology/system_properties", "platform_oem 7\nplatform_id 8\nplatform_rev 9\n");
	put("topology/nodes/0/gpu_id", "0\n");
	put("topology/nodes/0/name", "\n");
	put("topology/nodes/0/properties", "cpu_cores_count 96\nsimd_count 0\n");
	put("topology/nodes/0/mem_banks/0/properties", "size_in_bytes 4096\nheap_type 0\n");
	put_gpu(1, "51342\n", "location_id 50176\ndrm_render_minor 128\ncapability2 2\n");
}

DEFINE_AUTO(struct kfdtrap_topology *, kfdtrap_topology_destroy);
#define auto_topology auto_call(kfdtrap_topology_destroyp)
DEFINE_AUTO(struct kfdtrap_process_list *, kfdtrap_process_list_destroy);
#define auto_list auto_call(kfdtrap_process_list_destroyp)

static void reads_cpu_and_gpu(void)
{
	auto_topology struct kfdtrap_topology *t = NULL;
	const struct kfdtrap_node *gpu;

	tree_create();
	TEST_EQ_FATAL(kfdtrap_topology_create(root, &t), 0);
	TEST_EQ(t->generation, 2);
	TEST_EQ(t->platform_rev, 9);
	TEST_EQ_FATAL(t->n_nodes, 2);
	TEST_EQ(t->nodes[0].gpu_id, 0);
	TEST_EQ(t->nodes[0].cpu_cores_count, 96);
	TEST_EQ(t->nodes[0].system_bytes, 4096);
	TEST_STR(t->nodes[0].name, "");
	CU_ASSERT_FALSE(t->nodes[0].has_capability2);
	CU_ASSERT_PTR_NULL(kfdtrap_topology_find_gpu(t, 0));
	gpu = kfdtrap_topology_find_gpu(t, 51342);
	CU_ASSERT_PTR_EQUAL_FATAL(gpu, &t->nodes[1]);
	TEST_STR(gpu->name, "aqua?vanjaram");
	TEST_EQ(gpu->gfx_target_version, 90402);
	TEST_EQ(gpu->capability, 4158669440);
	CU_ASSERT_TRUE(gpu->has_capability2);
	TEST_EQ(gpu->capability2, 2);
	TEST_EQ(gpu->unique_id, UINT64_C(12345678901234567890));
	TEST_EQ(gpu->pci.domain, 1);
	TEST_EQ(gpu->pci.bus, 0xc4);
	TEST_EQ(gpu->pci.device, 0);
	TEST_EQ(gpu->pci.function, 0);
	TEST_EQ(gpu->local_bytes, 206141653992);
	TEST_EQ(gpu->local_public_bytes, 206141652992);
	tree_remove();
}

/* The partition's number is in the function bits, or above bit 27 in later kernels. */
static void partitions_share_one_pci_device(void)
{
	static const char *const locations[] = {
		"location_id 50176\ndrm_render_minor 128\n",
		"location_id 50177\ndrm_render_minor 129\n",
		"location_id 536921088\ndrm_render_minor 130\n", /* 2 << 28 | 0xc400 */
	};
	auto_topology struct kfdtrap_topology *t = NULL;

	tree_create();
	for (unsigned int i = 0; i < 3; i++) {
		char id[16];

		snprintf(id, sizeof(id), "%u\n", 100 + i);
		put_gpu(1 + i, id, locations[i]);
	}
	put_gpu(10, "200\n", "location_id 51233\ndrm_render_minor 131\n"); /* c8:04.1 */
	TEST_EQ_FATAL(kfdtrap_topology_create(root, &t), 0);
	TEST_EQ_FATAL(t->n_nodes, 5);
	for (unsigned int i = 0; i < 3; i++) {
		TEST_ROW_EQ(i, t->nodes[1 + i].gpu_id, 100 + i);
		TEST_ROW_EQ(i, t->nodes[1 + i].partition, i);
		TEST_ROW_EQ(i, t->nodes[1 + i].pci.bus, 0xc4);
		TEST_ROW_EQ(i, t->nodes[1 + i].pci.device, 0);
		TEST_ROW_EQ(i, t->nodes[1 + i].pci.function, 0);
	}
	TEST_EQ(t->nodes[4].node_id, 10);
	TEST_EQ(t->nodes[4].pci.device, 4);
	TEST_EQ(t->nodes[4].pci.function, 1);
	TEST_EQ(t->nodes[4].partition, 0);
	tree_remove();
}

/* What is missing in one node does not hide the others. */
static void unreadable_nodes_say_why(void)
{
	auto_topology struct kfdtrap_topology *t = NULL;

	tree_create();
	put_gpu(2, "61\n", "location_id 256\n");
	put_gpu(3, "not a number\n", "location_id 512\n");
	drop("topology/nodes/2/properties");
	TEST_EQ_FATAL(kfdtrap_topology_create(root, &t), 0);
	TEST_EQ_FATAL(t->n_nodes, 4);
	TEST_EQ(t->nodes[1].error, 0);
	TEST_EQ(t->nodes[2].error, -ENOENT);
	TEST_EQ(t->nodes[2].gpu_id, 0);
	TEST_EQ(t->nodes[3].error, -EINVAL);
	TEST_EQ(t->nodes[3].node_id, 3);
	tree_remove();
}

/* Files of a GPU outside the device cgroup: root is never refused, so ask as somebody else. */
static void forbidden_nodes_say_why(void)
{
	auto_topology struct kfdtrap_topology *t = NULL;
	char path[128];

	tree_create();
	snprintf(path, sizeof(path), "%s/topology/nodes/1/gpu_id", root);
	TEST_EQ(chmod(path, 0), 0);
	TEST_EQ(chmod(root, 0755), 0);
	if (geteuid() == 0)
		TEST_EQ_FATAL(seteuid(65534), 0);
	TEST_EQ(kfdtrap_topology_create(root, &t), 0);
	if (getuid() == 0)
		TEST_EQ_FATAL(seteuid(0), 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(t);
	TEST_EQ(t->nodes[1].error, -EACCES);
	tree_remove();
}

static void missing_trees_are_told_apart(void)
{
	struct kfdtrap_topology *t = NULL;
	struct kfdtrap_process_list *list = NULL;

	tree_create();
	put("topology/generation_id", "x\n");
	TEST_EQ(kfdtrap_topology_create(root, &t), -EINVAL);
	drop("topology/generation_id");
	TEST_EQ(kfdtrap_topology_create(root, &t), -ENOENT);
	TEST_EQ(kfdtrap_process_list_create(root, &list), -ENOENT);
	tree_remove();
	TEST_EQ(kfdtrap_topology_create("/nonexistent", &t), -ENOENT);
	TEST_EQ(kfdtrap_process_list_create("/nonexistent", &list), -ENOENT);
	TEST_EQ(kfdtrap_topology_create("/dev/null", &t), -ENOENT);
	CU_ASSERT_PTR_NULL(t);
	CU_ASSERT_PTR_NULL(list);
	kfdtrap_topology_destroy(NULL);
	kfdtrap_process_list_destroy(NULL);
}

/* A fifo as generation_id: every reader gets the next number of the list. */
static struct { const unsigned int *numbers; size_t n; char path[128]; } feed;

static void *feeder(void *arg)
{
	for (size_t i = 0; i < feed.n; i++) {
		int fd = open(feed.path, O_WRONLY | O_CLOEXEC);
		struct stat st;

		if (fd < 0)
			break;
		/* The next reader, who comes as soon as this one has its number, must find a fresh fifo. */
		if (stat(feed.path, &st) == 0 && i + 1 < feed.n) {
			unlink(feed.path);
			mkfifo(feed.path, 0600);
		}
		dprintf(fd, "%u\n", feed.numbers[i]);
		close(fd);
	}
	return NULL;
}

static int create_while_changing(const unsigned int *numbers, size_t n, struct kfdtrap_topology **t)
{
	struct timespec deadline;
	pthread_t thread;
	int r;

	tree_create();
	drop("topology/generation_id");
	snprintf(feed.path, sizeof(feed.path), "%s/topology/generation_id", root);
	TEST_EQ_FATAL(mkfifo(feed.path, 0600), 0);
	feed.numbers = numbers;
	feed.n = n;
	TEST_EQ_FATAL(pthread_create(&thread, NULL, feeder, NULL), 0);
	r = kfdtrap_topology_create(root, t);
	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec += 10;
	if (pthread_timedjoin_np(thread, NULL, &deadline)) {
		CU_FAIL("generation_id was read less often than expected");
		pthread_cancel(thread);
		pthread_join(thread, NULL);
	}
	tree_remove();
	return r;
}

static void changing_topology_is_read_again(void)
{
	static const unsigned int once[] = { 1, 2, 2, 2 };
	static const unsigned int for_ever[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 };
	auto_topology struct kfdtrap_topology *t = NULL;

	TEST_EQ(create_while_changing(once, TEST_COUNT(once), &t), 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(t);
	TEST_EQ(t->generation, 2);
	TEST_EQ(t->n_nodes, 2);
	kfdtrap_topology_destroy(TAKE_PTR(t));
	TEST_EQ(create_while_changing(for_ever, TEST_COUNT(for_ever), &t), -EAGAIN);
	CU_ASSERT_PTR_NULL(t);
}

static int list_two(struct drm_device_facts *devices, size_t max)
{
	devices[0] = (struct drm_device_facts){ { 0, 1, 0, 0 }, "/dev/dri/renderD140", "" };
	devices[1] = (struct drm_device_facts){ { 1, 0xc4, 0, 0 }, "/dev/dri/renderD128",
						"/dev/dri/card1" };
	return 2;
}

static int list_fails(struct drm_device_facts *devices, size_t max)
{
	return -ENOENT;
}

static int query_knows(const char *render_node, struct drm_driver_facts *ret_facts)
{
	if (strcmp(render_node, "/dev/dri/renderD128"))
		return -EACCES;
	*ret_facts = (struct drm_driver_facts){ "AMD Instinct MI300X", 192, 190, 3, 64 };
	return 0;
}

static void drm_facts_are_matched(void)
{
	static const struct drm_source two = { list_two, query_knows };
	static const struct drm_source fails = { list_fails, query_knows };
	auto_topology struct kfdtrap_topology *t = NULL;

	tree_create();
	put_gpu(2, "51343\n", "location_id 50177\ndrm_render_minor 129\n");
	put_gpu(3, "60\n", "location_id 2560\ndrm_render_minor 0\n");
	TEST_EQ_FATAL(kfdtrap_topology_create(root, &t), 0);
	TEST_EQ(topology_add_drm_from(t, &two), 2);
	TEST_STR(t->nodes[0].render_node, "");
	TEST_STR(t->nodes[1].render_node, "/dev/dri/renderD128");
	TEST_STR(t->nodes[1].card_node, "/dev/dri/card1");
	TEST_STR(t->nodes[1].marketing_name, "AMD Instinct MI300X");
	TEST_EQ(t->nodes[1].vram_bytes, 192);
	TEST_EQ(t->nodes[1].vram_used_bytes, 3);
	/* The second partition has its own render node; its driver refuses us. */
	TEST_STR(t->nodes[2].render_node, "/dev/dri/renderD129");
	TEST_STR(t->nodes[2].card_node, "/dev/dri/card1");
	TEST_STR(t->nodes[2].marketing_name, "");
	TEST_STR(t->nodes[3].render_node, "");
	TEST_EQ(topology_add_drm_from(t, &fails), 2);
	tree_remove();
}

/* With or without devices on this machine, the real source must not fail. */
static void real_drm_is_best_effort(void)
{
	struct kfdtrap_topology none = { 0 };

	TEST_EQ(kfdtrap_topology_add_drm(&none), 0);
}

static void processes_and_queues(void)
{
	auto_list struct kfdtrap_process_list *list = NULL;

	tree_create();
	put("proc/300/pasid", "32771\n");
	put("proc/300/vram_51342", "4096\n");
	put("proc/300/vram_x", "1\n");
	put("proc/300/queues/0/gpuid", "51342");
	put("proc/300/queues/0/size", "65536");
	put("proc/300/queues/0/type", "2");
	put("proc/300/queues/12/gpuid", "51342");
	put("proc/300/queues/12/size", "4096");
	put("proc/300/queues/12/type", "1");
	put("proc/300/queues/13/gpuid", "51342"); /* vanishing: the rest is gone */
	put("proc/300/context_1/pasid", "32772\n");
	put("proc/20/pasid", "1\n");
	put("proc/notes/pasid", "1\n");
	TEST_EQ_FATAL(kfdtrap_process_list_create(root, &list), 0);
	TEST_EQ_FATAL(list->n_processes, 2);
	TEST_EQ(list->processes[0].pid, 20);
	TEST_EQ(list->processes[0].n_queues, 0);
	TEST_EQ(list->processes[1].pid, 300);
	TEST_EQ(list->processes[1].pasid, 32771);
	TEST_EQ(list->processes[1].n_secondary_contexts, 1);
	TEST_EQ(kfdtrap_process_secondary_contexts(root, 300), 1);
	TEST_EQ(kfdtrap_process_secondary_contexts(root, 20), 0);
	TEST_EQ(kfdtrap_process_secondary_contexts(root, 21), 0);
	TEST_EQ(kfdtrap_process_secondary_contexts("/nonexistent", 20), -ENOENT);
	TEST_EQ_FATAL(list->processes[1].n_queues, 2);
	TEST_EQ(list->processes[1].queues[0].queue_id, 0);
	TEST_EQ(list->processes[1].queues[0].type, 2);
	TEST_EQ(list->processes[1].queues[1].queue_id, 12);
	TEST_EQ(list->processes[1].queues[1].size, 4096);
	TEST_EQ_FATAL(list->processes[1].n_memory, 1);
	TEST_EQ(list->processes[1].memory[0].gpu_id, 51342);
	TEST_EQ(list->processes[1].memory[0].vram_bytes, 4096);
	tree_remove();
}

static void numbers_are_strict(void)
{
	static const struct { const char *text; int r; uint64_t value; } rows[] = {
		{ "0", 0, 0 }, { " 17\n", 0, 17 }, { "18446744073709551615", 0, UINT64_MAX },
		{ "18446744073709551616", -ERANGE, 0 }, { "99999999999999999999999", -ERANGE, 0 },
		{ "", -EINVAL, 0 }, { " \n", -EINVAL, 0 }, { "-1", -EINVAL, 0 }, { "0x10", -EINVAL, 0 },
		{ "1 2", -EINVAL, 0 },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		size_t size = strlen(rows[i].text);
		uint64_t value = 0;

		TEST_ROW_EQ(i, sysfs_parse_u64(test_tail_dup(rows[i].text, size), size, &value),
			    rows[i].r);
		TEST_ROW_EQ(i, value, rows[i].value);
	}
}

static void broken_property_lines_are_skipped(void)
{
	static const char text[] = "simd_count 4294967296\ncapability\nnum_xcc x\nvendor_id 1\n"
				   "\n  \nsimd_count2 9\ncwsr_size 5\ncwsr_size 6";
	struct kfdtrap_node node = { 0 };

	topology_parse_node(test_tail_dup(text, sizeof(text) - 1), sizeof(text) - 1, &node);
	TEST_EQ(node.simd_count, 0);
	TEST_EQ(node.num_xcc, 0);
	TEST_EQ(node.vendor_id, 1);
	TEST_EQ(node.cwsr_size, 6);
}

TEST_SUITE(kfdtrap_topology, TEST(reads_cpu_and_gpu), TEST(partitions_share_one_pci_device),
	   TEST(unreadable_nodes_say_why), TEST(forbidden_nodes_say_why),
	   TEST(missing_trees_are_told_apart), TEST(changing_topology_is_read_again),
	   TEST(drm_facts_are_matched), TEST(real_drm_is_best_effort), TEST(processes_and_queues),
	   TEST(numbers_are_strict), TEST(broken_property_lines_are_skipped));
