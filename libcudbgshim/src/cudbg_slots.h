/* SPDX-License-Identifier: MIT */
#ifndef CUDBG_SLOTS_H
#define CUDBG_SLOTS_H

/**
 * @file cudbg_slots.h
 * The table that the debug engine hands out, slot by slot: X(number, OUR_NAME, vendorName, (args)).
 *
 * A slot never moves and never changes its arguments; a call that got a new form keeps its old slot
 * under a name with a version suffix.  Names are those of release 13.4.  test_cudbg_abi.py compares
 * numbers and names with the vendor's own headers.
 *
 * Enumerations travel as uint32_t: what comes back need not be a value that we know.  Event
 * structs older than release 6.0 are void: nothing calls their slots.
 */

#define CUDBGABI_ARGS_SM   uint32_t dev, uint32_t sm
#define CUDBGABI_ARGS_WARP CUDBGABI_ARGS_SM, uint32_t warp
#define CUDBGABI_ARGS_LANE CUDBGABI_ARGS_WARP, uint32_t lane

/* clang-format off */
#define CUDBGABI_SLOTS(X) \
	X(0, INITIALIZE, initialize, (void)) \
	X(1, FINALIZE, finalize, (void)) \
	X(2, SUSPEND_DEVICE, suspendDevice, (uint32_t dev)) \
	X(3, RESUME_DEVICE, resumeDevice, (uint32_t dev)) \
	X(4, SINGLE_STEP_WARP40, singleStepWarp40, (CUDBGABI_ARGS_WARP)) \
	X(5, SET_BREAKPOINT31, setBreakpoint31, (uint64_t addr)) \
	X(6, UNSET_BREAKPOINT31, unsetBreakpoint31, (uint64_t addr)) \
	X(7, READ_GRID_ID50, readGridId50, (CUDBGABI_ARGS_WARP, uint32_t *grid_id)) \
	X(8, READ_BLOCK_IDX32, readBlockIdx32, \
	  (CUDBGABI_ARGS_WARP, struct cudbgabi_dim2 *block_idx)) \
	X(9, READ_THREAD_IDX, readThreadIdx, \
	  (CUDBGABI_ARGS_LANE, struct cudbgabi_dim3 *thread_idx)) \
	X(10, READ_BROKEN_WARPS, readBrokenWarps, \
	  (CUDBGABI_ARGS_SM, uint64_t *broken_warps_mask)) \
	X(11, READ_VALID_WARPS, readValidWarps, (CUDBGABI_ARGS_SM, uint64_t *valid_warps_mask)) \
	X(12, READ_VALID_LANES, readValidLanes, \
	  (CUDBGABI_ARGS_WARP, uint32_t *valid_lanes_mask)) \
	X(13, READ_ACTIVE_LANES, readActiveLanes, \
	  (CUDBGABI_ARGS_WARP, uint32_t *active_lanes_mask)) \
	X(14, READ_CODE_MEMORY, readCodeMemory, \
	  (uint32_t dev, uint64_t addr, void *buf, uint32_t size)) \
	X(15, READ_CONST_MEMORY129, readConstMemory129, \
	  (uint32_t dev, uint64_t addr, void *buf, uint32_t size)) \
	X(16, READ_GLOBAL_MEMORY31, readGlobalMemory31, \
	  (uint32_t dev, uint64_t addr, void *buf, uint32_t size)) \
	X(17, READ_PARAM_MEMORY, readParamMemory, \
	  (CUDBGABI_ARGS_WARP, uint64_t addr, void *buf, uint32_t size)) \
	X(18, READ_SHARED_MEMORY, readSharedMemory, \
	  (CUDBGABI_ARGS_WARP, uint64_t addr, void *buf, uint32_t size)) \
	X(19, READ_LOCAL_MEMORY, readLocalMemory, \
	  (CUDBGABI_ARGS_LANE, uint64_t addr, void *buf, uint32_t size)) \
	X(20, READ_REGISTER, readRegister, (CUDBGABI_ARGS_LANE, uint32_t regno, uint32_t *val)) \
	X(21, READ_PC, readPC, (CUDBGABI_ARGS_LANE, uint64_t *pc)) \
	X(22, READ_VIRTUAL_PC, readVirtualPC, (CUDBGABI_ARGS_LANE, uint64_t *pc)) \
	X(23, READ_LANE_STATUS, readLaneStatus, (CUDBGABI_ARGS_LANE, bool *error)) \
	X(24, WRITE_GLOBAL_MEMORY31, writeGlobalMemory31, \
	  (uint32_t dev, uint64_t addr, const void *buf, uint32_t size)) \
	X(25, WRITE_PARAM_MEMORY, writeParamMemory, \
	  (CUDBGABI_ARGS_WARP, uint64_t addr, const void *buf, uint32_t size)) \
	X(26, WRITE_SHARED_MEMORY, writeSharedMemory, \
	  (CUDBGABI_ARGS_WARP, uint64_t addr, const void *buf, uint32_t size)) \
	X(27, WRITE_LOCAL_MEMORY, writeLocalMemory, \
	  (CUDBGABI_ARGS_LANE, uint64_t addr, const void *buf, uint32_t size)) \
	X(28, WRITE_REGISTER, writeRegister, (CUDBGABI_ARGS_LANE, uint32_t regno, uint32_t val)) \
	X(29, GET_GRID_DIM32, getGridDim32, \
	  (CUDBGABI_ARGS_WARP, struct cudbgabi_dim2 *grid_dim)) \
	X(30, GET_BLOCK_DIM, getBlockDim, (CUDBGABI_ARGS_WARP, struct cudbgabi_dim3 *block_dim)) \
	X(31, GET_TID, getTID, (CUDBGABI_ARGS_WARP, uint32_t *tid)) \
	X(32, GET_ELF_IMAGE32, getElfImage32, \
	  (CUDBGABI_ARGS_WARP, bool relocated, void **image, uint32_t *size)) \
	X(33, GET_DEVICE_TYPE, getDeviceType, (uint32_t dev, char *buf, uint32_t size)) \
	X(34, GET_SM_TYPE, getSmType, (uint32_t dev, char *buf, uint32_t size)) \
	X(35, GET_NUM_DEVICES, getNumDevices, (uint32_t *num_dev)) \
	X(36, GET_NUM_SMS, getNumSMs, (uint32_t dev, uint32_t *num_sms)) \
	X(37, GET_NUM_WARPS, getNumWarps, (uint32_t dev, uint32_t *num_warps)) \
	X(38, GET_NUM_LANES, getNumLanes, (uint32_t dev, uint32_t *num_lanes)) \
	X(39, GET_NUM_REGISTERS, getNumRegisters, (uint32_t dev, uint32_t *num_regs)) \
	X(40, GET_PHYSICAL_REGISTER30, getPhysicalRegister30, \
	  (uint64_t pc, char *reg, uint32_t *buf, uint32_t size, uint32_t *num_phys_regs, \
	   uint32_t *reg_class)) \
	X(41, DISASSEMBLE, disassemble, \
	  (uint32_t dev, uint64_t addr, uint32_t *inst_size, char *buf, uint32_t size)) \
	X(42, IS_DEVICE_CODE_ADDRESS55, isDeviceCodeAddress55, \
	  (uintptr_t addr, bool *is_device_address)) \
	X(43, LOOKUP_DEVICE_CODE_SYMBOL, lookupDeviceCodeSymbol, \
	  (char *sym_name, bool *sym_found, uintptr_t *sym_addr)) \
	X(44, SET_NOTIFY_NEW_EVENT_CALLBACK31, setNotifyNewEventCallback31, \
	  (cudbgabi_notify_31_fn *callback, void *data)) \
	X(45, GET_NEXT_EVENT30, getNextEvent30, (void *event)) \
	X(46, ACKNOWLEDGE_EVENT30, acknowledgeEvent30, (void *event)) \
	X(47, GET_GRID_ATTRIBUTE, getGridAttribute, \
	  (CUDBGABI_ARGS_WARP, uint32_t attr, uint64_t *value)) \
	X(48, GET_GRID_ATTRIBUTES, getGridAttributes, \
	  (CUDBGABI_ARGS_WARP, struct cudbgabi_attribute_value *pairs, uint32_t num_pairs)) \
	X(49, GET_PHYSICAL_REGISTER40, getPhysicalRegister40, \
	  (CUDBGABI_ARGS_WARP, uint64_t pc, char *reg, uint32_t *buf, uint32_t size, \
	   uint32_t *num_phys_regs, uint32_t *reg_class)) \
	X(50, READ_LANE_EXCEPTION, readLaneException, (CUDBGABI_ARGS_LANE, uint32_t *exception)) \
	X(51, GET_NEXT_EVENT32, getNextEvent32, (void *event)) \
	X(52, ACKNOWLEDGE_EVENTS42, acknowledgeEvents42, (void)) \
	X(53, READ_CALL_DEPTH32, readCallDepth32, (CUDBGABI_ARGS_WARP, uint32_t *depth)) \
	X(54, READ_RETURN_ADDRESS32, readReturnAddress32, \
	  (CUDBGABI_ARGS_WARP, uint32_t level, uint64_t *ra)) \
	X(55, READ_VIRTUAL_RETURN_ADDRESS32, readVirtualReturnAddress32, \
	  (CUDBGABI_ARGS_WARP, uint32_t level, uint64_t *ra)) \
	X(56, READ_GLOBAL_MEMORY55, readGlobalMemory55, \
	  (CUDBGABI_ARGS_LANE, uint64_t addr, void *buf, uint32_t size)) \
	X(57, WRITE_GLOBAL_MEMORY55, writeGlobalMemory55, \
	  (CUDBGABI_ARGS_LANE, uint64_t addr, const void *buf, uint32_t size)) \
	X(58, READ_PINNED_MEMORY, readPinnedMemory, (uint64_t addr, void *buf, uint32_t size)) \
	X(59, WRITE_PINNED_MEMORY, writePinnedMemory, \
	  (uint64_t addr, const void *buf, uint32_t size)) \
	X(60, SET_BREAKPOINT, setBreakpoint, (uint32_t dev, uint64_t addr)) \
	X(61, UNSET_BREAKPOINT, unsetBreakpoint, (uint32_t dev, uint64_t addr)) \
	X(62, SET_NOTIFY_NEW_EVENT_CALLBACK40, setNotifyNewEventCallback40, \
	  (cudbgabi_notify_40_fn *callback)) \
	X(63, GET_NEXT_EVENT42, getNextEvent42, (void *event)) \
	X(64, READ_TEXTURE_MEMORY, readTextureMemory, \
	  (uint32_t dev, uint32_t vsm, uint32_t wp, uint32_t id, uint32_t dim, \
	   uint32_t *coords, void *buf, uint32_t size)) \
	X(65, READ_BLOCK_IDX, readBlockIdx, \
	  (CUDBGABI_ARGS_WARP, struct cudbgabi_dim3 *block_idx)) \
	X(66, GET_GRID_DIM, getGridDim, (CUDBGABI_ARGS_WARP, struct cudbgabi_dim3 *grid_dim)) \
	X(67, READ_CALL_DEPTH, readCallDepth, (CUDBGABI_ARGS_LANE, uint32_t *depth)) \
	X(68, READ_RETURN_ADDRESS, readReturnAddress, \
	  (CUDBGABI_ARGS_LANE, uint32_t level, uint64_t *ra)) \
	X(69, READ_VIRTUAL_RETURN_ADDRESS, readVirtualReturnAddress, \
	  (CUDBGABI_ARGS_LANE, uint32_t level, uint64_t *ra)) \
	X(70, GET_ELF_IMAGE, getElfImage, \
	  (CUDBGABI_ARGS_WARP, bool relocated, void **image, uint64_t *size)) \
	X(71, GET_HOST_ADDR_FROM_DEVICE_ADDR, getHostAddrFromDeviceAddr, \
	  (uint32_t dev, uint64_t device_addr, uint64_t *host_addr)) \
	X(72, SINGLE_STEP_WARP41, singleStepWarp41, (CUDBGABI_ARGS_WARP, uint64_t *warp_mask)) \
	X(73, SET_NOTIFY_NEW_EVENT_CALLBACK41, setNotifyNewEventCallback41, \
	  (cudbgabi_notify_41_fn *callback)) \
	X(74, READ_SYSCALL_CALL_DEPTH, readSyscallCallDepth, \
	  (CUDBGABI_ARGS_LANE, uint32_t *depth)) \
	X(75, READ_TEXTURE_MEMORY_BINDLESS, readTextureMemoryBindless, \
	  (uint32_t dev, uint32_t vsm, uint32_t wp, uint32_t tex_symtab_index, uint32_t dim, \
	   uint32_t *coords, void *buf, uint32_t size)) \
	X(76, CLEAR_ATTACH_STATE, clearAttachState, (void)) \
	X(77, GET_NEXT_SYNC_EVENT50, getNextSyncEvent50, (void *event)) \
	X(78, MEMCHECK_READ_ERROR_ADDRESS, memcheckReadErrorAddress, \
	  (CUDBGABI_ARGS_LANE, uint64_t *address, uint32_t *storage)) \
	X(79, ACKNOWLEDGE_SYNC_EVENTS, acknowledgeSyncEvents, (void)) \
	X(80, GET_NEXT_ASYNC_EVENT50, getNextAsyncEvent50, (void *event)) \
	X(81, REQUEST_CLEANUP_ON_DETACH55, requestCleanupOnDetach55, (void)) \
	X(82, INITIALIZE_ATTACH_STUB, initializeAttachStub, (void)) \
	X(83, GET_GRID_STATUS50, getGridStatus50, \
	  (uint32_t dev, uint32_t grid_id, uint32_t *status)) \
	X(84, GET_NEXT_SYNC_EVENT55, getNextSyncEvent55, (void *event)) \
	X(85, GET_NEXT_ASYNC_EVENT55, getNextAsyncEvent55, (void *event)) \
	X(86, GET_GRID_INFO55, getGridInfo55, \
	  (uint32_t dev, uint64_t grid_id64, struct cudbgabi_grid_info *grid_info)) \
	X(87, READ_GRID_ID, readGridId, (CUDBGABI_ARGS_WARP, uint64_t *grid_id64)) \
	X(88, GET_GRID_STATUS, getGridStatus, \
	  (uint32_t dev, uint64_t grid_id64, uint32_t *status)) \
	X(89, SET_KERNEL_LAUNCH_NOTIFICATION_MODE, setKernelLaunchNotificationMode, \
	  (uint32_t mode)) \
	X(90, GET_DEVICE_PCI_BUS_INFO, getDevicePCIBusInfo, \
	  (uint32_t dev, uint32_t *pci_bus_id, uint32_t *pci_dev_id)) \
	X(91, READ_DEVICE_EXCEPTION_STATE80, readDeviceExceptionState80, \
	  (uint32_t dev, uint64_t *exception_smmask)) \
	X(92, GET_ADJUSTED_CODE_ADDRESS, getAdjustedCodeAddress, \
	  (uint32_t dev, uint64_t address, uint64_t *adjusted_address, uint32_t adj_action)) \
	X(93, READ_ERROR_PC, readErrorPC, \
	  (CUDBGABI_ARGS_WARP, uint64_t *error_pc, bool *error_pc_valid)) \
	X(94, GET_NEXT_EVENT, getNextEvent, (uint32_t type, struct cudbgabi_event *event)) \
	X(95, GET_ELF_IMAGE_BY_HANDLE, getElfImageByHandle, \
	  (uint32_t dev, uint64_t handle, uint32_t type, void *image, uint64_t size)) \
	X(96, RESUME_WARPS_UNTIL_PC60, resumeWarpsUntilPC60, \
	  (CUDBGABI_ARGS_SM, uint64_t warp_mask, uint64_t virt_pc)) \
	X(97, READ_WARP_STATE60, readWarpState60, \
	  (CUDBGABI_ARGS_WARP, struct cudbgabi_warp_state *state)) \
	X(98, READ_REGISTER_RANGE60, readRegisterRange60, \
	  (CUDBGABI_ARGS_LANE, uint32_t index, uint32_t n, uint32_t *registers)) \
	X(99, READ_GENERIC_MEMORY, readGenericMemory, \
	  (CUDBGABI_ARGS_LANE, uint64_t addr, void *buf, uint32_t size)) \
	X(100, WRITE_GENERIC_MEMORY, writeGenericMemory, \
	  (CUDBGABI_ARGS_LANE, uint64_t addr, const void *buf, uint32_t size)) \
	X(101, READ_GLOBAL_MEMORY, readGlobalMemory, (uint64_t addr, void *buf, uint32_t size)) \
	X(102, WRITE_GLOBAL_MEMORY, writeGlobalMemory, \
	  (uint64_t addr, const void *buf, uint32_t size)) \
	X(103, GET_MANAGED_MEMORY_REGION_INFO, getManagedMemoryRegionInfo, \
	  (uint64_t start_address, struct cudbgabi_memory_info *memory_info, uint32_t n, \
	   uint32_t *num_entries)) \
	X(104, IS_DEVICE_CODE_ADDRESS, isDeviceCodeAddress, \
	  (uintptr_t addr, bool *is_device_address)) \
	X(105, REQUEST_CLEANUP_ON_DETACH, requestCleanupOnDetach, (uint32_t app_resume_flag)) \
	X(106, READ_PREDICATES, readPredicates, \
	  (CUDBGABI_ARGS_LANE, uint32_t n, uint32_t *predicates)) \
	X(107, WRITE_PREDICATES, writePredicates, \
	  (CUDBGABI_ARGS_LANE, uint32_t n, const uint32_t *predicates)) \
	X(108, GET_NUM_PREDICATES, getNumPredicates, (uint32_t dev, uint32_t *num_predicates)) \
	X(109, READ_CC_REGISTER, readCCRegister, (CUDBGABI_ARGS_LANE, uint32_t *val)) \
	X(110, WRITE_CC_REGISTER, writeCCRegister, (CUDBGABI_ARGS_LANE, uint32_t val)) \
	X(111, GET_DEVICE_NAME, getDeviceName, (uint32_t dev, char *buf, uint32_t size)) \
	X(112, SINGLE_STEP_WARP65, singleStepWarp65, \
	  (CUDBGABI_ARGS_WARP, uint32_t nsteps, uint64_t *warp_mask)) \
	X(113, READ_DEVICE_EXCEPTION_STATE, readDeviceExceptionState, \
	  (uint32_t dev, uint64_t *mask, uint32_t num_words)) \
	X(114, GET_NUM_UNIFORM_REGISTERS, getNumUniformRegisters, \
	  (uint32_t dev, uint32_t *num_regs)) \
	X(115, READ_UNIFORM_REGISTER_RANGE, readUniformRegisterRange, \
	  (CUDBGABI_ARGS_WARP, uint32_t regno, uint32_t n, uint32_t *registers)) \
	X(116, WRITE_UNIFORM_REGISTER, writeUniformRegister, \
	  (CUDBGABI_ARGS_WARP, uint32_t regno, uint32_t val)) \
	X(117, GET_NUM_UNIFORM_PREDICATES, getNumUniformPredicates, \
	  (uint32_t dev, uint32_t *num_predicates)) \
	X(118, READ_UNIFORM_PREDICATES, readUniformPredicates, \
	  (CUDBGABI_ARGS_WARP, uint32_t n, uint32_t *predicates)) \
	X(119, WRITE_UNIFORM_PREDICATES, writeUniformPredicates, \
	  (CUDBGABI_ARGS_WARP, uint32_t n, const uint32_t *predicates)) \
	X(120, GET_LOADED_FUNCTION_INFO118, getLoadedFunctionInfo118, \
	  (uint32_t dev, uint64_t handle, struct cudbgabi_function_info *info, \
	   uint32_t num_entries)) \
	X(121, GET_GRID_INFO120, getGridInfo120, \
	  (uint32_t dev, uint64_t grid_id64, struct cudbgabi_grid_info *grid_info)) \
	X(122, GET_CLUSTER_DIM120, getClusterDim120, \
	  (uint32_t dev, uint64_t grid_id64, struct cudbgabi_dim3 *cluster_dim)) \
	X(123, READ_WARP_STATE120, readWarpState120, \
	  (CUDBGABI_ARGS_WARP, struct cudbgabi_warp_state *state)) \
	X(124, READ_CLUSTER_IDX, readClusterIdx, \
	  (CUDBGABI_ARGS_WARP, struct cudbgabi_dim3 *cluster_idx)) \
	X(125, GET_ERROR_STRING_EX, getErrorStringEx, \
	  (char *buf, uint32_t size, uint32_t *ret_size)) \
	X(126, GET_LOADED_FUNCTION_INFO, getLoadedFunctionInfo, \
	  (uint32_t dev, uint64_t handle, struct cudbgabi_function_info *info, \
	   uint32_t start_index, uint32_t num_entries)) \
	X(127, GENERATE_COREDUMP, generateCoredump, (const char *filename, uint32_t flags)) \
	X(128, GET_CONST_BANK_ADDRESS123, getConstBankAddress123, \
	  (CUDBGABI_ARGS_WARP, uint32_t bank, uint32_t offset, uint64_t *address)) \
	X(129, GET_DEVICE_INFO_SIZES, getDeviceInfoSizes, \
	  (uint32_t dev, struct cudbgabi_device_info_sizes *sizes)) \
	X(130, GET_DEVICE_INFO, getDeviceInfo, \
	  (uint32_t dev, uint32_t type, void *buffer, uint32_t length, uint32_t *data_length)) \
	X(131, GET_CONST_BANK_ADDRESS, getConstBankAddress, \
	  (uint32_t dev, uint64_t grid_id64, uint32_t bank, uint64_t *address, uint32_t *size)) \
	X(132, SINGLE_STEP_WARP, singleStepWarp, \
	  (CUDBGABI_ARGS_WARP, uint32_t lane_hint, uint32_t nsteps, uint32_t flags, \
	   uint64_t *warp_mask)) \
	X(133, READ_ALL_VIRTUAL_RETURN_ADDRESSES, readAllVirtualReturnAddresses, \
	  (CUDBGABI_ARGS_LANE, uint64_t *addrs, uint32_t num_addrs, uint32_t *call_depth, \
	   uint32_t *syscall_call_depth)) \
	X(134, GET_SUPPORTED_DEBUGGER_CAPABILITIES, getSupportedDebuggerCapabilities, \
	  (uint32_t *capabilities)) \
	X(135, READ_SM_EXCEPTION, readSmException, \
	  (CUDBGABI_ARGS_SM, uint32_t *exception, uint64_t *error_pc, bool *error_pc_valid)) \
	X(136, EXECUTE_INTERNAL_COMMAND, executeInternalCommand, \
	  (const char *command, char *result, uint32_t result_sz)) \
	X(137, GET_GRID_INFO, getGridInfo, \
	  (uint32_t dev, uint64_t grid_id64, struct cudbgabi_grid_info *info)) \
	X(138, GET_CLUSTER_DIM, getClusterDim, (CUDBGABI_ARGS_WARP, struct cudbgabi_dim3 *dim)) \
	X(139, READ_WARP_STATE127, readWarpState127, \
	  (CUDBGABI_ARGS_WARP, struct cudbgabi_warp_state *state)) \
	X(140, GET_CLUSTER_EXCEPTION_TARGET_BLOCK, getClusterExceptionTargetBlock, \
	  (CUDBGABI_ARGS_WARP, struct cudbgabi_dim3 *block_idx, bool *valid)) \
	X(141, READ_WARP_RESOURCES, readWarpResources, \
	  (CUDBGABI_ARGS_WARP, struct cudbgabi_warp_resources *res)) \
	X(142, GET_CBU_WARP_STATE, getCbuWarpState, \
	  (CUDBGABI_ARGS_SM, uint64_t warp_mask, struct cudbgabi_cbu_warp_state *states, \
	   uint32_t n)) \
	X(143, READ_WARP_STATE, readWarpState, \
	  (CUDBGABI_ARGS_WARP, struct cudbgabi_warp_state *state)) \
	X(144, CONSUME_CUDA_LOGS129, consumeCudaLogs129, \
	  (struct cudbgabi_log_message_129 *msgs, uint32_t n, uint32_t *got)) \
	X(145, READ_CPU_CALL_STACK, readCPUCallStack, \
	  (uint32_t dev, uint64_t grid_id64, uint64_t *addrs, uint32_t n, uint32_t *total)) \
	X(146, GET_CUDA_EXCEPTION_STRING, getCudaExceptionString, \
	  (CUDBGABI_ARGS_LANE, char *buf, uint32_t size, uint32_t *ret_size)) \
	X(147, SET_NOTIFY_NEW_EVENT_CALLBACK, setNotifyNewEventCallback, \
	  (cudbgabi_notify_fn *cb, void *user_data)) \
	X(148, GET_HARDWARE_BARRIER_INFO, getHardwareBarrierInfo, \
	  (CUDBGABI_ARGS_LANE, uint32_t *scope, char *buf, uint32_t size, uint32_t *ret_size)) \
	X(149, READ_REGISTER_RANGE, readRegisterRange, \
	  (CUDBGABI_ARGS_LANE, uint32_t index, uint32_t n, uint32_t *regs, uint32_t *n_read)) \
	X(150, INSERT_BREAKPOINT, insertBreakpoint, (uint32_t dev, uint64_t addr, uint64_t *h)) \
	X(151, REMOVE_BREAKPOINT, removeBreakpoint, (uint64_t h)) \
	X(152, ENABLE_BREAKPOINT, enableBreakpoint, (uint64_t h)) \
	X(153, DISABLE_BREAKPOINT, disableBreakpoint, (uint64_t h)) \
	X(154, IS_BREAKPOINT_ENABLED, isBreakpointEnabled, (uint64_t h, uint32_t *enabled)) \
	X(155, GET_WARP_HIT_BREAKPOINT, getWarpHitBreakpoint, (CUDBGABI_ARGS_WARP, uint64_t *h)) \
	X(156, RESUME_WARPS_UNTIL_PC, resumeWarpsUntilPC, \
	  (CUDBGABI_ARGS_SM, uint64_t warp_mask, uint64_t pc, uint32_t flags)) \
	X(157, SUSPEND_ALL_DEVICES, suspendAllDevices, (uint32_t non_blocking)) \
	X(158, RESUME_ALL_DEVICES, resumeAllDevices, (void)) \
	X(159, GET_BINDLESS_CONST_ADDRESS, getBindlessConstAddress, \
	  (uint32_t dev, uint64_t header, uint64_t *address, uint32_t *size)) \
	X(160, SET_CUDA_LOG_RULES, setCudaLogRules, \
	  (const struct cudbgabi_log_rule *rules, uint32_t n, uint32_t *new_index)) \
	X(161, CONSUME_CUDA_LOGS, consumeCudaLogs, \
	  (struct cudbgabi_log_message *msgs, uint32_t n, uint32_t *got)) \
	X(162, READ_RPC_REGISTERS, readRpcRegisters, \
	  (CUDBGABI_ARGS_LANE, uint32_t *lo, uint32_t *hi)) \
	X(163, WRITE_RPC_REGISTERS, writeRpcRegisters, \
	  (CUDBGABI_ARGS_LANE, const uint32_t *lo, const uint32_t *hi))
/* clang-format on */

#endif /* CUDBG_SLOTS_H */
