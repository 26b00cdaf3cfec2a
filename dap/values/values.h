/* SPDX-License-Identifier: MIT */
#ifndef DAP_VALUES_H
#define DAP_VALUES_H

/**
 * @file values.h
 * Variables of frames and values of expressions: what the agent told of them, and the rows that an
 * editor is shown for it.
 *
 *	values.c      what the agent told, kept until something moves
 *	value_rows.c  rows: a value, its members, its lanes
 *	scopes.c      scopes of a frame
 *	lanes.c       lanes of a wave, and which of them is shown
 */

#include "dap/adapter.h"

#define DAP_MEMBERS_MAX 1000u /**< Members of one value that are asked for at once. */

/* ------------------------------------------------------------------ values.c ----------------- */

/** What is asked of an expression. */
struct dap_expression {
	const char *text;
	uint32_t first, max; /**< Which members of its value are wanted; a max of 0: none. */
};

/**
 * Variables of a frame, with values of the lane that its thread shows.
 * @param of         A reference to the frame, or into it: its level is the index.
 * @param all_lanes  Also the values of all other lanes; of those of the thread's part, where it is one.
 * @return valid until the next call that may ask the agent; NULL with @p err.
 */
const struct rpc_wave_variables_result *dap_frame_variables(struct dap *d, const struct dap_ref *of,
							    bool all_lanes, struct agent_err *err);
/** The value of an expression in a frame.  @return as dap_frame_variables(). */
const struct rpc_wave_evaluate_result *dap_frame_value(struct dap *d, const struct dap_ref *of,
						       const struct dap_expression *e,
						       struct agent_err *err);
/** Forget what was told: something may have moved. */
void dap_values_forget(struct dap *d);
/**
 * Check that a wave has not left the place that is shown, which it may while the GPU runs.
 * @param pc  Where the agent saw it, in the frame of @p of.
 * @return 0, -ESTALE with @p err.
 */
int dap_check_place(const struct dap *d, const struct dap_ref *of, uint64_t pc,
		    struct agent_err *err);
/** The same of a thread that is shown at @p shown. */
int dap_check_thread(const struct dap *d, const struct dap_thread *t, uint64_t shown, uint64_t pc,
		     struct agent_err *err);

/* ------------------------------------------------------------------ value_rows.c ------------- */

/** Which rows of a list are wanted, and how many were seen. */
struct dap_page {
	struct dap *d;
	struct out *o;
	uint64_t start, count; /**< A count of 0 stands for all. */
	uint64_t at;
};

/** A row of a list; zeroed members are left out. */
struct dap_row {
	const char *name, *value, *type;
	const char *memory;   /**< Address of the memory to show for it. */
	const char *evaluate; /**< Expression that means it. */
	uint32_t ref;	      /**< Reference to what is in it; 0: it cannot be opened. */
	uint64_t n_named, n_indexed; /**< How many rows are in it, where that is known. */
	bool read_only;		     /**< Say that it can never be set. */
};

/** Append a row, if it is one of those that are wanted. */
void dap_put_row(struct dap_page *p, const struct dap_row *row);

/** A value as the agent tells it of variables, members, expressions. */
struct dap_value {
	const char *name, *type;
	enum rpc_value_state state;
	const char *reason, *value, *location, *expression;
	bool has_address;
	uint64_t address;
	uint32_t members; /**< 0: it cannot be opened. */
};

/** The value in words: what it is, or why that is not known. */
const char *dap_value_text(struct rpc_arena *a, const struct dap_value *v);
/** Make a row of a value in the frame of @p of; what is in it can be opened. */
struct dap_row dap_value_row(struct dap *d, const struct dap_ref *of, const struct dap_value *v);
/** The value of a variable. */
struct dap_value dap_value_of_variable(const struct rpc_variable *v);
/** A value of an expression; its text is what the user typed. */
struct dap_value dap_value_of(const struct rpc_wave_evaluate_result *r, const char *expression);
/** Append the variables of one kind that a frame has. */
int dap_open_variables(struct dap_page *p, const struct dap_ref *ref, struct agent_err *err);
/** Append the variables of a frame, each with what it is in all lanes. */
/** @return a value of lanes in words. */
const char *dap_lane_text(struct rpc_arena *a, const struct rpc_lane_value *v);
int dap_open_all_lanes(struct dap_page *p, const struct dap_ref *ref, struct agent_err *err);
/** Append what is in a value. */
int dap_open_value(struct dap_page *p, const struct dap_ref *ref, struct agent_err *err);

/* ------------------------------------------------------------------ why.c -------------------- */

/** What the waves of a thread wait for. */
int dap_open_why(struct dap_page *p, const struct dap_ref *ref, struct agent_err *err);

/* ------------------------------------------------------------------ scopes.c ----------------- */

/** The arguments that the kernel of a thread's wave was launched with, as rows. */
int dap_open_arguments(struct dap_page *p, const struct dap_ref *ref, struct agent_err *err);

/* ------------------------------------------------------------------ lanes.c ------------------ */

/** The work-item of a lane; NULL when it is not known. */
const struct rpc_work_item *dap_work_item(const struct rpc_wave_registers *r, uint32_t lane);
/** The lane that a thread shows of its wave. */
uint32_t dap_lane_shown(const struct dap_thread *t, const struct rpc_wave_registers *r);
/** The part of its wave that a lane is in; NULL: all lanes are at one place. */
const struct rpc_wave_part *dap_lane_part(const struct rpc_wave_registers *r, uint32_t lane);
/**
 * Show a thread where its wave is.
 * @param lane  DAP_LANE_ANY for a wave whose lanes are all there.
 */
void dap_thread_show(struct dap_thread *t, const struct rpc_group *place, uint64_t pc, uint32_t lane);
/** Show another lane of a thread's wave, which becomes the focus. */
int dap_lane_choose(struct dap *d, struct dap_thread *t, uint32_t lane, struct agent_err *err);
/** Read the optional `lane` of @p args.  @param ret  Untouched if it is not there. */
int dap_lane_arg(struct dap_json args, bool *ret_found, uint32_t *ret, struct agent_err *err);

#endif /* DAP_VALUES_H */
