/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes the simulator with script lines, debugger calls, answers of the engine and time, in any
 * order.
 *
 * Input: records of one byte kind, two bytes size, payload.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/reader.h"
#include "fuzzlib.h"
#include "sim.h"

#define RECORDS_MAX 64

enum record { RECORD_LINE, RECORD_CALL, RECORD_ENGINE, RECORD_ATTACH, RECORD_TIME, RECORD_COUNT };

static uint64_t now;

static void notify(struct sim_process *p, uint32_t tid, uint32_t timeout)
{
}

static void ask_engine(struct sim_process *p, enum wire_ask ask, uint32_t initialized,
		       uint32_t resume)
{
}

static void nothing(struct sim_process *p)
{
}

static uint64_t now_ns(void)
{
	return now;
}

static const struct sim_os os = { notify, ask_engine, nothing, nothing, now_ns };

/* Run a line that names no file; an image comes behind the line's NUL. */
static void line(struct sim_process *p, const char *data, size_t size)
{
	size_t n = strnlen(data, size);
	auto_free char *text = strndup(data, n);
	size_t rest = n < size ? size - n - 1 : 0;

	if (!text)
		abort();
	if (!strstr(text, "file=") && !strstr(text, "run"))
		command_run(p, text, rest ? data + n + 1 : NULL, rest, NULL);
}

static void call(struct sim_process *p, const uint8_t *data, size_t size)
{
	struct slot_request q;
	struct call_fate fate;
	auto_out struct out out = { 0 };
	uint32_t slot;

	if (size < sizeof(slot))
		return;
	memcpy(&slot, data, sizeof(slot));
	if (slot_request_decode(slot, data + 4, size - 4, &q))
		return;
	out_init(&out, WIRE_FRAME_MAX);
	call_answer(p, &q, &out, &fate);
}

static void record(struct sim_process *p, enum record kind, const uint8_t *data, size_t size)
{
	uint32_t resume;

	switch (kind) {
	case RECORD_LINE:
		line(p, (const char *)data, size);
		break;
	case RECORD_CALL:
		call(p, data, size);
		break;
	case RECORD_ENGINE:
		session_engine_answer(p, size && *data);
		break;
	case RECORD_ATTACH:
		session_engine(p, 1, 2, size ? *data : 1, &resume);
		break;
	default:
		now += size ? *data * UINT64_C(1000000) : 0;
		session_tick(p);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sim s = { .os = &os, .script = (char *)"devices 2 sms=3 warps=4" };
	struct sim_process *p = sim_process_create(&s, 1);
	auto_out struct out state = { 0 };
	struct reader r;

	if (!p)
		abort();
	reader_init(&r, data, size);
	for (size_t i = 0; i < RECORDS_MAX && reader_left(&r) >= 3; i++) {
		enum record kind = (enum record)(reader_u8(&r) % RECORD_COUNT);
		size_t n = reader_u16(&r);

		if (n > reader_left(&r))
			n = reader_left(&r);
		record(p, kind, reader_bytes(&r, n), n);
	}
	out_init(&state, 0);
	state_json(&s, &state);
	sim_process_destroy(p);
	return 0;
}
