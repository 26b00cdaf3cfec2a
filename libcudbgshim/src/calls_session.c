/* SPDX-License-Identifier: MIT */
/* Calls that concern the session and whole devices. */
#include "internal.h"

#include <errno.h>

int cudbgshim_initialize(struct cudbgshim *s)
{
	int r = CALL(s, initialize);

	return last_result_is(s, CUDBGABI_ERROR_SOME_DEVICES_WATCHDOGGED)
		       ? CUDBGSHIM_SOME_WATCHDOGGED
		       : r;
}

int cudbgshim_finalize(struct cudbgshim *s)
{
	return CALL(s, finalize);
}

int cudbgshim_suspend_device(struct cudbgshim *s, uint32_t dev)
{
	int r = CALL(s, suspendDevice, dev);

	return last_result_is(s, CUDBGABI_ERROR_SUSPENDED_DEVICE) ? CUDBGSHIM_ALREADY : r;
}

int cudbgshim_resume_device(struct cudbgshim *s, uint32_t dev)
{
	int r = CALL(s, resumeDevice, dev);

	return last_result_is(s, CUDBGABI_ERROR_RUNNING_DEVICE) ? CUDBGSHIM_ALREADY : r;
}

static int for_each_device(struct cudbgshim *s, int (*act)(struct cudbgshim *, uint32_t))
{
	uint32_t n = 0;
	int first, r;

	first = cudbgshim_get_n_devices(s, &n);
	for (uint32_t dev = 0; dev < n; dev++) {
		r = act(s, dev);
		if (r < 0 && !first)
			first = r;
	}
	return first;
}

int cudbgshim_suspend_all(struct cudbgshim *s)
{
	int r;

	if (!HAS(s, suspendAllDevices))
		return for_each_device(s, cudbgshim_suspend_device);
	r = CALL(s, suspendAllDevices, 0);
	return last_result_is(s, CUDBGABI_ERROR_SUSPENDED_DEVICE) ? 0 : r;
}

int cudbgshim_resume_all(struct cudbgshim *s)
{
	int r;

	if (!HAS(s, resumeAllDevices))
		return for_each_device(s, cudbgshim_resume_device);
	r = CALL(s, resumeAllDevices);
	return last_result_is(s, CUDBGABI_ERROR_RUNNING_DEVICE) ? 0 : r;
}

int cudbgshim_clear_attach_state(struct cudbgshim *s)
{
	return CALL(s, clearAttachState);
}

int cudbgshim_initialize_attach_stub(struct cudbgshim *s)
{
	return CALL(s, initializeAttachStub);
}

int cudbgshim_request_cleanup_on_detach(struct cudbgshim *s, uint32_t resume_flag)
{
	return CALL(s, requestCleanupOnDetach, resume_flag);
}

int cudbgshim_get_capabilities(struct cudbgshim *s, uint32_t *ret_bits)
{
	uint32_t bits = 0;

	RETURN_VALUE(CALL(s, getSupportedDebuggerCapabilities, &bits), ret_bits, bits);
}

int cudbgshim_get_n_devices(struct cudbgshim *s, uint32_t *ret_n)
{
	uint32_t n = 0;
	int r = CALL(s, getNumDevices, &n);

	if (r < 0)
		return r;
	if (n > CUDBGSHIM_MAX_DEVICES)
		return -EPROTO;
	*ret_n = n;
	return 0;
}

static int get_shape(struct cudbgshim *s, uint32_t dev, struct cudbgshim_device *d)
{
	int r;

	/* The chain ends at the first call that fails. */
	(void)((r = CALL(s, getNumSMs, dev, &d->n_sms)) ||
	       (r = CALL(s, getNumWarps, dev, &d->n_warps)) ||
	       (r = CALL(s, getNumLanes, dev, &d->n_lanes)) ||
	       (r = CALL(s, getNumRegisters, dev, &d->n_registers)));
	if (r < 0)
		return r;
	if (d->n_sms > CUDBGSHIM_MAX_SMS || d->n_warps > CUDBGSHIM_MAX_WARPS ||
	    d->n_lanes > CUDBGSHIM_MAX_LANES)
		return -EPROTO;
	return 0;
}

static void get_text(int r, char *text, size_t size)
{
	text[r < 0 ? 0 : size - 1] = '\0';
}

static void get_number(int r, uint32_t *number)
{
	if (r < 0)
		*number = 0;
}

/*
 * Read what a device may lack.  Old chips have no uniform registers, a chip without a bus has no
 * place on it, slices of a chip may keep more to themselves: warps can be read all the same.
 */
static int get_rest(struct cudbgshim *s, uint32_t dev, struct cudbgshim_device *d)
{
	get_text(CALL(s, getDeviceName, dev, d->name, sizeof(d->name)), d->name, sizeof(d->name));
	get_text(CALL(s, getDeviceType, dev, d->chip, sizeof(d->chip)), d->chip, sizeof(d->chip));
	get_text(CALL(s, getSmType, dev, d->sm_type, sizeof(d->sm_type)), d->sm_type,
		 sizeof(d->sm_type));
	get_number(CALL(s, getNumPredicates, dev, &d->n_predicates), &d->n_predicates);
	get_number(CALL(s, getNumUniformRegisters, dev, &d->n_uniform_registers),
		   &d->n_uniform_registers);
	get_number(CALL(s, getNumUniformPredicates, dev, &d->n_uniform_predicates),
		   &d->n_uniform_predicates);
	if (CALL(s, getDevicePCIBusInfo, dev, &d->pci_bus, &d->pci_device) < 0)
		d->pci_bus = d->pci_device = 0;
	return s->over ? s->last.error : 0;
}

int cudbgshim_get_device(struct cudbgshim *s, uint32_t dev, struct cudbgshim_device *ret_device)
{
	struct cudbgshim_device d = { 0 };
	int r = get_shape(s, dev, &d);

	if (!r)
		r = get_rest(s, dev, &d);
	RETURN_VALUE(r, ret_device, d);
}

int cudbgshim_read_exception_sms(struct cudbgshim *s, uint32_t dev, uint32_t n_sms,
				 uint64_t ret_mask[CUDBGSHIM_SM_WORDS])
{
	uint64_t mask[CUDBGSHIM_SM_WORDS] = { 0 };
	int r;

	if (n_sms > CUDBGSHIM_MAX_SMS)
		return -EINVAL;
	if (HAS(s, readDeviceExceptionState))
		r = CALL(s, readDeviceExceptionState, dev, mask, (n_sms + 63) / 64);
	else
		r = CALL(s, readDeviceExceptionState80, dev, mask);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < CUDBGSHIM_SM_WORDS; i++)
		ret_mask[i] = mask[i] & low_bits(n_sms > 64 * i ? n_sms - 64 * i : 0);
	return 0;
}

int cudbgshim_read_sm_exception(struct cudbgshim *s, uint32_t dev, uint32_t sm,
				uint32_t *ret_exception, uint64_t *ret_error_pc,
				bool *ret_has_error_pc)
{
	uint32_t exception = CUDBGABI_EXCEPTION_NONE;
	uint64_t error_pc = 0;
	bool has = false;
	int r = CALL(s, readSmException, dev, sm, &exception, &error_pc, &has);

	if (r < 0)
		return r;
	*ret_exception = exception;
	*ret_error_pc = has ? error_pc : 0;
	*ret_has_error_pc = has;
	return 0;
}
