/* SPDX-License-Identifier: MIT */
#ifndef CUDBG_SYMBOLS_H
#define CUDBG_SYMBOLS_H

/**
 * @file cudbg_symbols.h
 * The symbols that a debugger reads, writes and calls in the debuggee's libcuda.
 */

#include <stdint.h>

#define CUDBGABI_INJECTION_PATH_SIZE 4096u

/**
 * Variables in the debuggee's libcuda: X(OUR_NAME, symbol, size in bytes, optional).  An optional
 * one is missing from some release that we support; the others are missing from none.
 */
#define CUDBGABI_VARIABLES(X)                                                                      \
	X(IPC_FLAG, cudbgIpcFlag, 4, false)                                                        \
	X(RPC_ENABLED, cudbgRpcEnabled, 4, false)                                                  \
	X(CLIENT_PID, cudbgApiClientPid, 4, false)                                                 \
	X(CLIENT_REVISION, cudbgApiClientRevision, 4, false)                                       \
	X(SESSION_ID, cudbgSessionId, 4, false)                                                    \
	X(CAPABILITIES, cudbgDebuggerCapabilities, 4, true)                                        \
	X(INJECTION_PATH, cudbgInjectionPath, CUDBGABI_INJECTION_PATH_SIZE, true)                  \
	X(USE_EXTERNAL_DEBUGGER, cudbgUseExternalDebugger, 4, true)                                \
	X(INITIALIZED, cudbgDebuggerInitialized, 4, false)                                         \
	X(RESUME_FLAG, cudbgResumeForAttachDetach, 4, false)                                       \
	X(ATTACH_HANDLER_AVAILABLE, cudbgAttachHandlerAvailable, 4, true)                          \
	X(ATTACH_FD, cudbgInitiateDebuggerAttachProcedureFd, 4, true)                              \
	X(LAUNCH_BLOCKING, cudbgEnableLaunchBlocking, 4, false)                                    \
	X(PREEMPTION, cudbgEnablePreemptionDebugging, 4, true)                                     \
	X(MEMCHECK, cudbgEnableIntegratedMemcheck, 4, true)                                        \
	X(DETACH_SUSPENDED_MASK, cudbgDetachSuspendedDevicesMask, 4, true)                         \
	X(API_ERROR_FLAGS, cudbgReportDriverApiErrorFlags, 4, true)                                \
	X(API_ERROR_CODE, cudbgReportedDriverApiErrorCode, 8, true)                                \
	X(API_ERROR_FUNC_NAME_SIZE, cudbgReportedDriverApiErrorFuncNameSize, 8, true)              \
	X(API_ERROR_FUNC_NAME_ADDR, cudbgReportedDriverApiErrorFuncNameAddr, 8, true)              \
	X(API_ERROR_SOURCE, cudbgReportedDriverApiErrorSource, 4, true)                            \
	X(API_ERROR_NAME_SIZE, cudbgReportedDriverApiErrorNameSize, 8, true)                       \
	X(API_ERROR_NAME_ADDR, cudbgReportedDriverApiErrorNameAddr, 8, true)                       \
	X(API_ERROR_STRING_SIZE, cudbgReportedDriverApiErrorStringSize, 8, true)                   \
	X(API_ERROR_STRING_ADDR, cudbgReportedDriverApiErrorStringAddr, 8, true)                   \
	X(INTERNAL_ERROR_CODE, cudbgReportedDriverInternalErrorCode, 8, false)

/** Functions in the debuggee's libcuda: X(OUR_NAME, symbol, optional). */
#define CUDBGABI_FUNCTIONS(X)                                                                      \
	X(API_INIT, cudbgApiInit, true)                                                            \
	X(API_ATTACH, cudbgApiAttach, false)                                                       \
	X(API_DETACH, cudbgApiDetach, false)                                                       \
	X(REPORT_API_ERROR, cudbgReportDriverApiError, true)                                       \
	X(REPORT_INTERNAL_ERROR, cudbgReportDriverInternalError, true)                             \
	X(REPORT_ATTACH_FINISHED, cudbgReportAttachProcedureFinished, true)                        \
	X(PRE_INIT, cudbgPreInit, true)                                                            \
	X(MAIN, cudbgMain, true)

/**
 * Result in the low half of cudbgReportedDriverInternalErrorCode; the high half is a place in the
 * driver.
 */
#define CUDBGABI_INTERNAL_ERROR_RESULT(code) ((uint32_t)(code))
/** Bit of cudbgReportDriverApiErrorFlags: do not report "not ready". */
#define CUDBGABI_API_ERROR_SUPPRESS_NOT_READY UINT32_C(1)

#endif /* CUDBG_SYMBOLS_H */
