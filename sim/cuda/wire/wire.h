/* SPDX-License-Identifier: MIT */
#ifndef CUDASIM_WIRE_H
#define CUDASIM_WIRE_H

/**
 * @file wire.h
 * How the parts of the simulated CUDA stack talk to the simulated GPU.
 *
 * The GPU is a process of its own (gpu-agent-cuda-sim), as the real one is a device behind a kernel
 * driver: debugger calls work while every thread of the debuggee is stopped.  Each part connects to
 * its Unix stream socket, says what it is with struct wire_hello, and then exchanges frames:
 * struct wire_head and size - 8 bytes of payload.
 *
 *	role	   requests					answers
 *	APP	   code = cudbgIpcFlag, text line, NUL, blob	code = errno value, text
 *	CONTROL	   the same, lines may say "to PID LINE"	the same
 *	ENGINE	   first answer: u32 resume word; then the simulator asks: enum wire_ask
 *	DEBUGGER   code = slot, numbers, buffers		code = CUDBGResult, buffers
 *	NOTIFY	   none; the simulator sends u32 tid, u32 timeout for each callback
 *	MEMORY	   to the engine alone, which answers with its process's number (sharing.h)
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "cudbg_slots.h"

#define WIRE_MAGIC     UINT64_C(0x314d495341445543)
#define WIRE_FRAME_MAX ((uint32_t)64 << 20)

/**
 * Looking for a message without sleeping: who talks asks again as soon as there is an answer, and to sleep in between
 * costs more than all else, in a virtual machine ten times over.  Where none comes soon, processors are busy, and the
 * next ones are waited for asleep.
 */
struct wire_soon {
	uint64_t until_ns;
	unsigned int asleep; /**< So many more are waited for asleep. */
};
#define WIRE_SOON_NS UINT64_C(50000)
#define WIRE_ASLEEP  10u

static inline void wire_soon_begin(struct wire_soon *s)
{
	s->asleep -= s->asleep > 0;
	s->until_ns = s->asleep ? 0 : clock_now_ns() + WIRE_SOON_NS;
}

/** @return whether to look again; else it is time to sleep. */
static inline bool wire_soon(struct wire_soon *s)
{
	if (!s->until_ns)
		return false;
	if (clock_now_ns() < s->until_ns)
		return true;
	s->until_ns = 0;
	s->asleep = WIRE_ASLEEP;
	return false;
}

/** Who is at the other end of a connection. */
enum wire_role { WIRE_APP = 1, WIRE_CONTROL, WIRE_ENGINE, WIRE_DEBUGGER, WIRE_NOTIFY, WIRE_MEMORY };

/** What the simulator asks the engine thread in the debuggee; no answer while that is stopped. */
enum wire_ask {
	WIRE_ASK_ALIVE, /**< Answer: u32 cudbgIpcFlag. */
	WIRE_ASK_SET,   /**< u32 cudbgDebuggerInitialized, u32 cudbgResumeForAttachDetach; same
			   answer. */
	WIRE_ASK_LET_GO, /**< The detach is complete: clear cudbgUseExternalDebugger; same answer. */
	WIRE_ASK_QUIT,  /**< The engine thread ends, with its socket. */
};

/** The first bytes on a connection. */
struct wire_hello {
	uint64_t magic;
	uint32_t role;
	uint32_t label, session; /**< Of the debug session; unused for APP and CONTROL. */
	uint32_t word; /**< ENGINE: capabilities; DEBUGGER: release as major * 100 + minor; MEMORY: 1 to be sent it. */
};

/** The head of a frame. */
struct wire_head {
	uint32_t size; /**< Bytes of the frame, this head included. */
	uint32_t code;
};

/** One piece of a frame to send. */
struct wire_piece {
	const void *data;
	size_t size;
};

/** Connect to the GPU and send the hello.  @return descriptor (close-on-exec) or -errno. */
int wire_connect(const char *path, const struct wire_hello *hello);
/**
 * Give an open connection away over @p sock, or, when @p fd is negative, say why there is none.
 * @return 0 or -errno.
 */
int wire_give(int sock, int fd);
/** Take what wire_give() has sent, within two seconds.  @return descriptor or -errno. */
int wire_take(int sock);
/** Send one frame on a blocking socket; what fails on its way ends the connection.  @return 0 or -errno; no SIGPIPE. */
int wire_send(int fd, uint32_t code, const struct wire_piece *pieces, size_t n);
/** Receive one frame; *ret_data is malloc'ed and NUL-terminated.  @return 0, -EPIPE (closed),
 * -EBADMSG, -errno. */
int wire_recv(int fd, uint32_t *ret_code, char **ret_data, size_t *ret_size);

/* ---- arguments of debugger calls ---- */

#define SLOT_SCALARS_MAX 8
#define SLOT_BUFFERS_MAX 4

/** Which way a buffer of a call goes. */
enum slot_kind { SLOT_NONE, SLOT_IN, SLOT_OUT, SLOT_INOUT, SLOT_STRING };

/** A pointer among the arguments of a call. */
struct slot_buffer {
	enum slot_kind kind;
	uint32_t unit;  /**< Bytes, or bytes per element. */
	int count_from; /**< Position of the number that counts the elements; -1: one. */
};

/** One function of the debugger's table. */
struct slot_info {
	const char *name;
	uint8_t depth; /**< How many of device, SM, warp, lane come first. */
	uint8_t n_scalars, n_buffers;
	bool runs; /**< It answers while the GPU runs. */
	struct slot_buffer buffers[SLOT_BUFFERS_MAX];
};

/** By slot; generated from the description of the calls. */
extern const struct slot_info slot_table[SLOT_COUNT];

/** Whether a buffer travels with the request. */
static inline bool slot_is_input(const struct slot_buffer *b)
{
	return b->kind == SLOT_IN || b->kind == SLOT_INOUT || b->kind == SLOT_STRING;
}
/** Whether a buffer travels with the answer. */
static inline bool slot_is_output(const struct slot_buffer *b)
{
	return b->kind == SLOT_OUT || b->kind == SLOT_INOUT;
}
/** How many bytes a buffer has that is no string. */
static inline uint64_t slot_buffer_size(const struct slot_buffer *b, const uint64_t *scalars)
{
	return b->count_from < 0 ? b->unit : b->unit * (scalars[b->count_from] & UINT32_MAX);
}

/** A decoded request; it borrows from the frame. */
struct slot_request {
	const struct slot_info *info;
	uint32_t slot;
	uint64_t in[SLOT_SCALARS_MAX];
	struct wire_piece buffers[SLOT_BUFFERS_MAX]; /**< Inputs; size alone for outputs: room. */
};

/** Decode the payload of a request.  @return 0, -EBADMSG (unknown slot, wrong lengths). */
int slot_request_decode(uint32_t slot, const void *payload, size_t size, struct slot_request *ret);

#endif /* CUDASIM_WIRE_H */
