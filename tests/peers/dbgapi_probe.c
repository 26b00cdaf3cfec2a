/* SPDX-License-Identifier: MIT */
/*
 * Drives AMD's debugger library on one process, in the steps that its standard input asks for:
 *
 *	attach  events  objects  devices  queues  waves  stop-waves  run-waves  hold  release  watch
 *	unwatch  freeze  unfreeze  stop  list  places  dispatches  write  resume  step  detach
 *
 * hold: no forward progress, so that queues stay suspended once they were looked at.
 * Each step ends with a line `ok STEP`, or `error STEP: call: status`; the library's messages go to
 * standard error.  Not linked with anything of ours: an independent judge of the simulator.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <unistd.h>

struct amd_dbgapi_client_process_s {
	pid_t pid;
	int mem_fd;
};

#include "dbgapi_client.h"

static struct amd_dbgapi_client_process_s target;
static amd_dbgapi_process_id_t process;
static amd_dbgapi_watchpoint_id_t watch;
static const char *failed_call;
static amd_dbgapi_status_t failed_status;

/* The first call of a step that fails decides what the step says. */
static bool good(amd_dbgapi_status_t status, const char *call)
{
	if (status == AMD_DBGAPI_STATUS_SUCCESS)
		return true;
	if (!failed_call) {
		failed_call = call;
		failed_status = status;
	}
	return false;
}

#define GOOD(call, ...) good(amd_dbgapi_##call(__VA_ARGS__), #call "(" #__VA_ARGS__ ")")

/* Likewise, but what is not known is no failure. */
static bool known(amd_dbgapi_status_t status, const char *call)
{
	return status != AMD_DBGAPI_STATUS_ERROR_NOT_AVAILABLE && good(status, call);
}

#define KNOWN(call, ...) known(amd_dbgapi_##call(__VA_ARGS__), #call "(" #__VA_ARGS__ ")")

/* ------------------------------------------------------- what the library asks of its client - */

static amd_dbgapi_status_t process_info(amd_dbgapi_client_process_id_t p,
					amd_dbgapi_client_process_info_t query, size_t size, void *value)
{
	if (query != AMD_DBGAPI_CLIENT_PROCESS_INFO_OS_PID)
		return AMD_DBGAPI_STATUS_ERROR_NOT_AVAILABLE;
	if (size != sizeof(p->pid))
		return AMD_DBGAPI_STATUS_ERROR_INVALID_ARGUMENT_COMPATIBILITY;
	*(pid_t *)value = p->pid;
	return AMD_DBGAPI_STATUS_SUCCESS;
}

/* Nothing is loaded or unloaded while we look: no breakpoint is ever hit. */
static amd_dbgapi_status_t breakpoint_insert(amd_dbgapi_client_process_id_t p,
					     amd_dbgapi_global_address_t address,
					     amd_dbgapi_breakpoint_id_t id)
{
	printf("breakpoint %#" PRIx64 "\n", address);
	return AMD_DBGAPI_STATUS_SUCCESS;
}

static amd_dbgapi_status_t memory(amd_dbgapi_client_process_id_t p,
				  amd_dbgapi_global_address_t address, amd_dbgapi_size_t *size,
				  void *read_buffer, const void *write_buffer)
{
	ssize_t n = read_buffer ? pread(p->mem_fd, read_buffer, *size, (off_t)address) :
				  pwrite(p->mem_fd, write_buffer, *size, (off_t)address);

	if (n <= 0 && *size)
		return AMD_DBGAPI_STATUS_ERROR_MEMORY_ACCESS;
	*size = (amd_dbgapi_size_t)n;
	return AMD_DBGAPI_STATUS_SUCCESS;
}

/* ------------------------------------------------------------------------------------ steps -- */

static void events(void)
{
	amd_dbgapi_event_kind_t kind;
	amd_dbgapi_event_id_t id;

	while (GOOD(process_next_pending_event, process, &id, &kind) &&
	       kind != AMD_DBGAPI_EVENT_KIND_NONE) {
		amd_dbgapi_runtime_state_t state;

		if (kind == AMD_DBGAPI_EVENT_KIND_RUNTIME &&
		    GOOD(event_get_info, id, AMD_DBGAPI_EVENT_INFO_RUNTIME_STATE, sizeof(state), &state))
			printf("runtime %d\n", (int)state);
		else
			printf("event %d\n", (int)kind);
		GOOD(event_processed, id);
	}
}

static void attach(void)
{
	size_t watchpoints = 0;

	if (ptrace(PTRACE_SEIZE, target.pid, NULL, NULL) < 0) {
		fprintf(stderr, "PTRACE_SEIZE: %s\n", strerror(errno));
		good(AMD_DBGAPI_STATUS_ERROR_RESTRICTION, "ptrace");
		return;
	}
	if (!GOOD(process_attach, &target, &process))
		return;
	events();
	if (GOOD(process_get_info, process, AMD_DBGAPI_PROCESS_INFO_WATCHPOINT_COUNT,
		 sizeof(watchpoints), &watchpoints))
		printf("watchpoints %zu\n", watchpoints);
}

static void one_device(amd_dbgapi_agent_id_t id)
{
	uint64_t os_id = 0;
	uint32_t vendor = 0, device = 0;
	size_t units = 0, waves = 0;
	amd_dbgapi_agent_state_t state = 0;
	amd_dbgapi_architecture_id_t arch = { 0 };
	char *name = NULL, *arch_name = NULL;
	uint16_t slot = 0, domain = 0;

	GOOD(agent_get_info, id, AMD_DBGAPI_AGENT_INFO_OS_ID, sizeof(os_id), &os_id);
	GOOD(agent_get_info, id, AMD_DBGAPI_AGENT_INFO_NAME, sizeof(name), &name);
	GOOD(agent_get_info, id, AMD_DBGAPI_AGENT_INFO_STATE, sizeof(state), &state);
	GOOD(agent_get_info, id, AMD_DBGAPI_AGENT_INFO_PCI_DOMAIN, sizeof(domain), &domain);
	GOOD(agent_get_info, id, AMD_DBGAPI_AGENT_INFO_PCI_SLOT, sizeof(slot), &slot);
	GOOD(agent_get_info, id, AMD_DBGAPI_AGENT_INFO_PCI_VENDOR_ID, sizeof(vendor), &vendor);
	GOOD(agent_get_info, id, AMD_DBGAPI_AGENT_INFO_PCI_DEVICE_ID, sizeof(device), &device);
	GOOD(agent_get_info, id, AMD_DBGAPI_AGENT_INFO_EXECUTION_UNIT_COUNT, sizeof(units), &units);
	GOOD(agent_get_info, id, AMD_DBGAPI_AGENT_INFO_MAX_WAVES_PER_EXECUTION_UNIT, sizeof(waves), &waves);
	if (GOOD(agent_get_info, id, AMD_DBGAPI_AGENT_INFO_ARCHITECTURE, sizeof(arch), &arch))
		GOOD(architecture_get_info, arch, AMD_DBGAPI_ARCHITECTURE_INFO_NAME, sizeof(arch_name),
		     &arch_name);
	printf("device %" PRIu64 " %s %s pci %04x:%04x vendor %x:%x units %zu waves %zu '%s'\n", os_id,
	       arch_name ? arch_name : "-", state == AMD_DBGAPI_AGENT_STATE_SUPPORTED ? "supported" : "unsupported",
	       domain, slot, vendor, device, units, waves, name ? name : "");
	free(name);
	free(arch_name);
}

static void devices(void)
{
	amd_dbgapi_agent_id_t *ids = NULL;
	size_t n = 0;

	if (GOOD(process_agent_list, process, &n, &ids, NULL))
		for (size_t i = 0; i < n; i++)
			one_device(ids[i]);
	free(ids);
}

static void one_queue(amd_dbgapi_queue_id_t id)
{
	uint64_t os_id = 0, address = 0, size = 0, agent_os_id = 0;
	amd_dbgapi_os_queue_type_t type = 0;
	amd_dbgapi_agent_id_t agent;

	GOOD(queue_get_info, id, AMD_DBGAPI_QUEUE_INFO_OS_ID, sizeof(os_id), &os_id);
	GOOD(queue_get_info, id, AMD_DBGAPI_QUEUE_INFO_TYPE, sizeof(type), &type);
	GOOD(queue_get_info, id, AMD_DBGAPI_QUEUE_INFO_ADDRESS, sizeof(address), &address);
	GOOD(queue_get_info, id, AMD_DBGAPI_QUEUE_INFO_SIZE, sizeof(size), &size);
	if (GOOD(queue_get_info, id, AMD_DBGAPI_QUEUE_INFO_AGENT, sizeof(agent), &agent))
		GOOD(agent_get_info, agent, AMD_DBGAPI_AGENT_INFO_OS_ID, sizeof(agent_os_id), &agent_os_id);
	printf("queue %" PRIu64 " device %" PRIu64 " type %d ring %#" PRIx64 " %" PRIu64 "\n", os_id, agent_os_id,
	       (int)type, address, size);
}

static void queues(void)
{
	amd_dbgapi_queue_id_t *ids = NULL;
	size_t n = 0;

	if (GOOD(process_queue_list, process, &n, &ids, NULL))
		for (size_t i = 0; i < n; i++)
			one_queue(ids[i]);
	free(ids);
}

static void objects(void)
{
	amd_dbgapi_code_object_id_t *ids = NULL;
	size_t n = 0;

	if (GOOD(process_code_object_list, process, &n, &ids, NULL))
		for (size_t i = 0; i < n; i++) {
			ptrdiff_t address = 0;
			char *uri = NULL;

			GOOD(code_object_get_info, ids[i], AMD_DBGAPI_CODE_OBJECT_INFO_LOAD_ADDRESS,
			     sizeof(address), &address);
			GOOD(code_object_get_info, ids[i], AMD_DBGAPI_CODE_OBJECT_INFO_URI_NAME,
			     sizeof(uri), &uri);
			printf("object %#tx %s\n", address, uri ? uri : "-");
			free(uri);
		}
	free(ids);
}

static void waves(void)
{
	amd_dbgapi_wave_id_t *ids = NULL;
	size_t n = 0;

	if (GOOD(process_wave_list, process, &n, &ids, NULL))
		printf("waves %zu\n", n);
	free(ids);
}

static void stop_waves(void)
{
	GOOD(process_set_wave_creation, process, AMD_DBGAPI_WAVE_CREATION_STOP);
}

static void run_waves(void)
{
	GOOD(process_set_wave_creation, process, AMD_DBGAPI_WAVE_CREATION_NORMAL);
}

static void hold(void)
{
	if (GOOD(process_set_progress, process, AMD_DBGAPI_PROGRESS_NO_FORWARD))
		waves();
}

static void release(void)
{
	GOOD(process_set_progress, process, AMD_DBGAPI_PROGRESS_NORMAL);
}

static void watch_set(void)
{
	GOOD(set_watchpoint, process, 0x7f0000001000, 4096, AMD_DBGAPI_WATCHPOINT_KIND_ALL, &watch);
}

static void watch_remove(void)
{
	GOOD(remove_watchpoint, watch);
}

/* Each wave, and each that is in that state. */
static void each_wave(amd_dbgapi_wave_state_t in, void (*act)(amd_dbgapi_wave_id_t wave))
{
	amd_dbgapi_wave_id_t *ids = NULL;
	size_t n = 0;

	if (GOOD(process_wave_list, process, &n, &ids, NULL))
		for (size_t i = 0; i < n; i++) {
			amd_dbgapi_wave_state_t state = 0;

			if (GOOD(wave_get_info, ids[i], AMD_DBGAPI_WAVE_INFO_STATE, sizeof(state), &state) &&
			    (!in || state == in))
				act(ids[i]);
		}
	free(ids);
}

/* Name and size of a register, if it is one of those that are looked at. */
static bool is_shown(amd_dbgapi_register_id_t id, char ret_name[8], uint64_t *ret_size)
{
	char *name = NULL;
	bool shown = GOOD(register_get_info, id, AMD_DBGAPI_REGISTER_INFO_NAME, sizeof(name), &name) &&
		     (!strcmp(name, "s3") || !strcmp(name, "v2")) &&
		     GOOD(register_get_info, id, AMD_DBGAPI_REGISTER_INFO_SIZE, sizeof(*ret_size), ret_size);

	if (shown)
		snprintf(ret_name, 8, "%s", name);
	free(name);
	return shown && *ret_size <= 256;
}

static void print_registers(amd_dbgapi_wave_id_t wave)
{
	amd_dbgapi_register_id_t *ids = NULL;
	size_t n = 0;

	if (GOOD(wave_register_list, wave, &n, &ids))
		for (size_t i = 0; i < n; i++) {
			uint8_t value[256];
			uint64_t size;
			char name[8];

			if (!is_shown(ids[i], name, &size) || !GOOD(read_register, wave, ids[i], 0, size, value))
				continue;
			printf(" %s ", name);
			for (uint64_t b = 0; b < size; b++)
				printf("%02x", value[b]);
		}
	free(ids);
}

static void write_registers(amd_dbgapi_wave_id_t wave)
{
	amd_dbgapi_register_id_t *ids = NULL;
	size_t n = 0;

	if (GOOD(wave_register_list, wave, &n, &ids))
		for (size_t i = 0; i < n; i++) {
			uint8_t value[256];
			uint64_t size;
			char name[8];

			memset(value, 0x33, sizeof(value));
			if (is_shown(ids[i], name, &size))
				GOOD(write_register, wave, ids[i], 0, size, value);
		}
	free(ids);
}

static void print_wave(amd_dbgapi_wave_id_t wave)
{
	amd_dbgapi_wave_state_t state = 0;
	amd_dbgapi_wave_stop_reasons_t reasons = 0;
	uint64_t pc = 0;

	GOOD(wave_get_info, wave, AMD_DBGAPI_WAVE_INFO_STATE, sizeof(state), &state);
	printf("wave %" PRIu64 " ", wave.handle);
	if (state != AMD_DBGAPI_WAVE_STATE_STOP) {
		printf("runs\n");
		return;
	}
	GOOD(wave_get_info, wave, AMD_DBGAPI_WAVE_INFO_STOP_REASON, sizeof(reasons), &reasons);
	GOOD(wave_get_info, wave, AMD_DBGAPI_WAVE_INFO_PC, sizeof(pc), &pc);
	printf("stopped %#x pc %#" PRIx64, (unsigned)reasons, pc);
	print_registers(wave);
	printf("\n");
}

static void list(void)
{
	each_wave(0, print_wave);
}

static void print_queue_of(amd_dbgapi_queue_id_t queue)
{
	uint64_t os_id = 0;

	GOOD(queue_get_info, queue, AMD_DBGAPI_QUEUE_INFO_OS_ID, sizeof(os_id), &os_id);
	printf(" queue %" PRIu64, os_id);
}

/* What a stopped wave works on, as far as that is known, and where it is. */
static void print_place(amd_dbgapi_wave_id_t wave)
{
	uint64_t pc = 0, exec = 0, packet;
	uint32_t group[3], in_group;
	amd_dbgapi_wave_stop_reasons_t reasons = 0;
	size_t lanes = 0;
	amd_dbgapi_dispatch_id_t dispatch;
	amd_dbgapi_queue_id_t queue;

	GOOD(wave_get_info, wave, AMD_DBGAPI_WAVE_INFO_PC, sizeof(pc), &pc);
	GOOD(wave_get_info, wave, AMD_DBGAPI_WAVE_INFO_EXEC_MASK, sizeof(exec), &exec);
	GOOD(wave_get_info, wave, AMD_DBGAPI_WAVE_INFO_LANE_COUNT, sizeof(lanes), &lanes);
	GOOD(wave_get_info, wave, AMD_DBGAPI_WAVE_INFO_STOP_REASON, sizeof(reasons), &reasons);
	printf("place pc %#" PRIx64 " exec %#" PRIx64 " lanes %zu reasons %u", pc, exec, lanes, (unsigned)reasons);
	if (GOOD(wave_get_info, wave, AMD_DBGAPI_WAVE_INFO_QUEUE, sizeof(queue), &queue))
		print_queue_of(queue);
	if (KNOWN(wave_get_info, wave, AMD_DBGAPI_WAVE_INFO_DISPATCH, sizeof(dispatch), &dispatch) &&
	    GOOD(dispatch_get_info, dispatch, AMD_DBGAPI_DISPATCH_INFO_OS_QUEUE_PACKET_ID, sizeof(packet),
		 &packet))
		printf(" dispatch %" PRIu64, packet);
	if (KNOWN(wave_get_info, wave, AMD_DBGAPI_WAVE_INFO_WORKGROUP_COORD, sizeof(group), group))
		printf(" workgroup %u,%u,%u", group[0], group[1], group[2]);
	if (KNOWN(wave_get_info, wave, AMD_DBGAPI_WAVE_INFO_WAVE_NUMBER_IN_WORKGROUP, sizeof(in_group),
		  &in_group))
		printf(" wave_in_group %u", in_group);
	printf("\n");
}

static void places(void)
{
	each_wave(AMD_DBGAPI_WAVE_STATE_STOP, print_place);
}

static void print_dispatch(amd_dbgapi_dispatch_id_t id)
{
	uint64_t packet = 0, kernel = 0, entry = 0, arguments = 0, private_size = 0, lds = 0;
	uint16_t group[3] = { 0 };
	uint32_t grid[3] = { 0 };
	amd_dbgapi_queue_id_t queue;

	GOOD(dispatch_get_info, id, AMD_DBGAPI_DISPATCH_INFO_OS_QUEUE_PACKET_ID, sizeof(packet), &packet);
	GOOD(dispatch_get_info, id, AMD_DBGAPI_DISPATCH_INFO_WORKGROUP_SIZES, sizeof(group), group);
	GOOD(dispatch_get_info, id, AMD_DBGAPI_DISPATCH_INFO_GRID_SIZES, sizeof(grid), grid);
	GOOD(dispatch_get_info, id, AMD_DBGAPI_DISPATCH_INFO_PRIVATE_SEGMENT_SIZE, sizeof(private_size),
	     &private_size);
	GOOD(dispatch_get_info, id, AMD_DBGAPI_DISPATCH_INFO_GROUP_SEGMENT_SIZE, sizeof(lds), &lds);
	GOOD(dispatch_get_info, id, AMD_DBGAPI_DISPATCH_INFO_KERNEL_ARGUMENT_SEGMENT_ADDRESS,
	     sizeof(arguments), &arguments);
	GOOD(dispatch_get_info, id, AMD_DBGAPI_DISPATCH_INFO_KERNEL_DESCRIPTOR_ADDRESS, sizeof(kernel),
	     &kernel);
	GOOD(dispatch_get_info, id, AMD_DBGAPI_DISPATCH_INFO_KERNEL_CODE_ENTRY_ADDRESS, sizeof(entry), &entry);
	printf("dispatch %" PRIu64 " workgroup %u,%u,%u grid %u,%u,%u private %" PRIu64 " lds %" PRIu64
	       " arguments %#" PRIx64 " kernel %#" PRIx64 " entry %#" PRIx64,
	       packet, group[0], group[1], group[2], grid[0], grid[1], grid[2], private_size, lds, arguments,
	       kernel, entry);
	if (GOOD(dispatch_get_info, id, AMD_DBGAPI_DISPATCH_INFO_QUEUE, sizeof(queue), &queue))
		print_queue_of(queue);
	printf("\n");
}

static void dispatches(void)
{
	amd_dbgapi_dispatch_id_t *ids = NULL;
	size_t n = 0;

	if (GOOD(process_dispatch_list, process, &n, &ids, NULL))
		for (size_t i = 0; i < n; i++)
			print_dispatch(ids[i]);
	free(ids);
}

static void stop_wave(amd_dbgapi_wave_id_t wave)
{
	GOOD(wave_stop, wave);
}

static void stop(void)
{
	each_wave(AMD_DBGAPI_WAVE_STATE_RUN, stop_wave);
}

static void resume_wave(amd_dbgapi_wave_id_t wave)
{
	GOOD(wave_resume, wave, AMD_DBGAPI_RESUME_MODE_NORMAL, AMD_DBGAPI_EXCEPTION_NONE);
}

static void resume(void)
{
	each_wave(AMD_DBGAPI_WAVE_STATE_STOP, resume_wave);
}

static void step_wave(amd_dbgapi_wave_id_t wave)
{
	GOOD(wave_resume, wave, AMD_DBGAPI_RESUME_MODE_SINGLE_STEP, AMD_DBGAPI_EXCEPTION_NONE);
}

static void step_waves(void)
{
	each_wave(AMD_DBGAPI_WAVE_STATE_STOP, step_wave);
}

static void write_waves(void)
{
	each_wave(AMD_DBGAPI_WAVE_STATE_STOP, write_registers);
}

static void freeze(void)
{
	GOOD(process_freeze, process);
}

static void unfreeze(void)
{
	GOOD(process_unfreeze, process);
}

static void detach(void)
{
	GOOD(process_detach, process);
}

static const struct {
	const char *name;
	void (*run)(void);
} steps[] = {
	{ "attach", attach }, { "devices", devices }, { "queues", queues }, { "waves", waves },
	{ "events", events }, { "objects", objects }, { "stop-waves", stop_waves }, { "run-waves", run_waves }, { "hold", hold },
	{ "release", release }, { "watch", watch_set }, { "unwatch", watch_remove }, { "freeze", freeze },
	{ "unfreeze", unfreeze }, { "stop", stop }, { "list", list },
	{ "places", places }, { "dispatches", dispatches }, { "write", write_waves }, { "resume", resume },
	{ "step", step_waves }, { "detach", detach },
};

static void step(const char *name)
{
	const char *text = "?";

	failed_call = NULL;
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++)
		if (!strcmp(steps[i].name, name)) {
			steps[i].run();
			if (!failed_call) {
				printf("ok %s\n", name);
				return;
			}
			amd_dbgapi_get_status_string(failed_status, &text);
			printf("error %s: %s: %s\n", name, failed_call, text);
			return;
		}
	printf("error %s: no such step\n", name);
}

int main(int argc, char **argv)
{
	char line[64], path[64];

	setvbuf(stdout, NULL, _IOLBF, 0);
	target.pid = argc == 2 ? atoi(argv[1]) : 0;
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)target.pid);
	target.mem_fd = open(path, O_RDWR | O_CLOEXEC);
	if (target.pid <= 0 || target.mem_fd < 0) {
		fputs("usage: dbgapi_probe PID\n", stderr);
		return 2;
	}
	amd_dbgapi_set_log_level(AMD_DBGAPI_LOG_LEVEL_WARNING);
	if (getenv("DBGAPI_TRACE"))
		amd_dbgapi_set_log_level(AMD_DBGAPI_LOG_LEVEL_TRACE);
	if (!GOOD(initialize, &callbacks))
		return 1;
	puts("ready");
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		step(line);
	}
	/* The kernel drops what was not detached. */
	return 0;
}
