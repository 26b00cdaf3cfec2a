/* SPDX-License-Identifier: MIT */
/*
 * Our declaration of the KFD ABI against the kernel's own header, where one is installed that has
 * the debug interface (make KFD_UAPI_INCLUDE=DIR looks in DIR first), and against kfdtrap.h.
 */
#include "libkfdtrap/include/kfdtrap.h"
#include "libkfdtrap/src/kfd_abi.h"
#include "testlib.h"

#if defined(__has_include)
#if __has_include(<linux/kfd_ioctl.h>) && __has_include(<drm/drm.h>)
#include <linux/kfd_ioctl.h>
#endif
#endif

#ifdef AMDKFD_IOC_DBG_TRAP

#define SAME_SIZE(theirs, ours) TEST_EQ(sizeof(struct theirs), sizeof(struct kfdabi_##ours))
#define SAME_OFFSET(theirs, their_member, ours, our_member)                                        \
	TEST_EQ(offsetof(struct theirs, their_member), offsetof(struct kfdabi_##ours, our_member))
/* Some of theirs are signed shifts: compare what travels. */
#define SAME_VALUE32(theirs, ours) TEST_EQ((uint32_t)(theirs), (uint32_t)(ours))
#define SAME_VALUE64(theirs, ours) TEST_EQ((uint64_t)(theirs), (uint64_t)(ours))

static void general_arguments(void)
{
	SAME_SIZE(kfd_ioctl_get_version_args, get_version_args);
	SAME_OFFSET(kfd_ioctl_get_version_args, major_version, get_version_args, major_version);
	SAME_OFFSET(kfd_ioctl_get_version_args, minor_version, get_version_args, minor_version);
	SAME_SIZE(kfd_ioctl_destroy_queue_args, destroy_queue_args);
	SAME_OFFSET(kfd_ioctl_destroy_queue_args, queue_id, destroy_queue_args, queue_id);
	SAME_SIZE(kfd_ioctl_update_queue_args, update_queue_args);
	SAME_OFFSET(kfd_ioctl_update_queue_args, ring_base_address, update_queue_args,
		    ring_base_address);
	SAME_OFFSET(kfd_ioctl_update_queue_args, queue_id, update_queue_args, queue_id);
	SAME_OFFSET(kfd_ioctl_update_queue_args, ring_size, update_queue_args, ring_size);
	SAME_OFFSET(kfd_ioctl_update_queue_args, queue_percentage, update_queue_args,
		    queue_percentage);
	SAME_OFFSET(kfd_ioctl_update_queue_args, queue_priority, update_queue_args, queue_priority);
	SAME_SIZE(kfd_ioctl_set_memory_policy_args, set_memory_policy_args);
	SAME_OFFSET(kfd_ioctl_set_memory_policy_args, alternate_aperture_base,
		    set_memory_policy_args, alternate_aperture_base);
	SAME_OFFSET(kfd_ioctl_set_memory_policy_args, alternate_aperture_size,
		    set_memory_policy_args, alternate_aperture_size);
	SAME_OFFSET(kfd_ioctl_set_memory_policy_args, gpu_id, set_memory_policy_args, gpu_id);
	SAME_OFFSET(kfd_ioctl_set_memory_policy_args, default_policy, set_memory_policy_args,
		    default_policy);
	SAME_OFFSET(kfd_ioctl_set_memory_policy_args, alternate_policy, set_memory_policy_args,
		    alternate_policy);
	SAME_SIZE(kfd_ioctl_get_clock_counters_args, get_clock_counters_args);
	SAME_OFFSET(kfd_ioctl_get_clock_counters_args, gpu_clock_counter, get_clock_counters_args,
		    gpu_clock_counter);
	SAME_OFFSET(kfd_ioctl_get_clock_counters_args, cpu_clock_counter, get_clock_counters_args,
		    cpu_clock_counter);
	SAME_OFFSET(kfd_ioctl_get_clock_counters_args, system_clock_counter,
		    get_clock_counters_args, system_clock_counter);
	SAME_OFFSET(kfd_ioctl_get_clock_counters_args, system_clock_freq, get_clock_counters_args,
		    system_clock_freq);
	SAME_OFFSET(kfd_ioctl_get_clock_counters_args, gpu_id, get_clock_counters_args, gpu_id);
	SAME_SIZE(kfd_process_device_apertures, process_apertures);
	SAME_OFFSET(kfd_process_device_apertures, lds_base, process_apertures, lds_base);
	SAME_OFFSET(kfd_process_device_apertures, lds_limit, process_apertures, lds_limit);
	SAME_OFFSET(kfd_process_device_apertures, scratch_base, process_apertures, scratch_base);
	SAME_OFFSET(kfd_process_device_apertures, scratch_limit, process_apertures, scratch_limit);
	SAME_OFFSET(kfd_process_device_apertures, gpuvm_base, process_apertures, gpuvm_base);
	SAME_OFFSET(kfd_process_device_apertures, gpuvm_limit, process_apertures, gpuvm_limit);
	SAME_OFFSET(kfd_process_device_apertures, gpu_id, process_apertures, gpu_id);
	SAME_SIZE(kfd_ioctl_get_process_apertures_args, get_process_apertures_args);
	SAME_OFFSET(kfd_ioctl_get_process_apertures_args, process_apertures,
		    get_process_apertures_args, apertures);
	SAME_OFFSET(kfd_ioctl_get_process_apertures_args, num_of_nodes, get_process_apertures_args,
		    num_of_nodes);
	SAME_SIZE(kfd_ioctl_get_process_apertures_new_args, get_process_apertures_new_args);
	SAME_OFFSET(kfd_ioctl_get_process_apertures_new_args, kfd_process_device_apertures_ptr,
		    get_process_apertures_new_args, apertures_ptr);
	SAME_OFFSET(kfd_ioctl_get_process_apertures_new_args, num_of_nodes,
		    get_process_apertures_new_args, num_of_nodes);
	SAME_SIZE(kfd_ioctl_acquire_vm_args, acquire_vm_args);
	SAME_OFFSET(kfd_ioctl_acquire_vm_args, drm_fd, acquire_vm_args, drm_fd);
	SAME_OFFSET(kfd_ioctl_acquire_vm_args, gpu_id, acquire_vm_args, gpu_id);
	SAME_SIZE(kfd_ioctl_alloc_memory_of_gpu_args, alloc_memory_args);
	SAME_OFFSET(kfd_ioctl_alloc_memory_of_gpu_args, va_addr, alloc_memory_args, va_addr);
	SAME_OFFSET(kfd_ioctl_alloc_memory_of_gpu_args, size, alloc_memory_args, size);
	SAME_OFFSET(kfd_ioctl_alloc_memory_of_gpu_args, handle, alloc_memory_args, handle);
	SAME_OFFSET(kfd_ioctl_alloc_memory_of_gpu_args, mmap_offset, alloc_memory_args,
		    mmap_offset);
	SAME_OFFSET(kfd_ioctl_alloc_memory_of_gpu_args, gpu_id, alloc_memory_args, gpu_id);
	SAME_OFFSET(kfd_ioctl_alloc_memory_of_gpu_args, flags, alloc_memory_args, flags);
	SAME_SIZE(kfd_ioctl_free_memory_of_gpu_args, free_memory_args);
	SAME_OFFSET(kfd_ioctl_free_memory_of_gpu_args, handle, free_memory_args, handle);
	SAME_SIZE(kfd_ioctl_map_memory_to_gpu_args, map_memory_args);
	SAME_OFFSET(kfd_ioctl_map_memory_to_gpu_args, handle, map_memory_args, handle);
	SAME_OFFSET(kfd_ioctl_map_memory_to_gpu_args, device_ids_array_ptr, map_memory_args,
		    device_ids_ptr);
	SAME_OFFSET(kfd_ioctl_map_memory_to_gpu_args, n_devices, map_memory_args, n_devices);
	SAME_OFFSET(kfd_ioctl_map_memory_to_gpu_args, n_success, map_memory_args, n_success);
	SAME_SIZE(kfd_ioctl_unmap_memory_from_gpu_args, map_memory_args);
	SAME_OFFSET(kfd_ioctl_unmap_memory_from_gpu_args, handle, map_memory_args, handle);
	SAME_OFFSET(kfd_ioctl_unmap_memory_from_gpu_args, device_ids_array_ptr, map_memory_args,
		    device_ids_ptr);
	SAME_OFFSET(kfd_ioctl_unmap_memory_from_gpu_args, n_devices, map_memory_args, n_devices);
	SAME_OFFSET(kfd_ioctl_unmap_memory_from_gpu_args, n_success, map_memory_args, n_success);
	SAME_SIZE(kfd_ioctl_set_scratch_backing_va_args, set_scratch_args);
	SAME_OFFSET(kfd_ioctl_set_scratch_backing_va_args, va_addr, set_scratch_args, va_addr);
	SAME_OFFSET(kfd_ioctl_set_scratch_backing_va_args, gpu_id, set_scratch_args, gpu_id);
	SAME_SIZE(kfd_ioctl_get_tile_config_args, get_tile_config_args);
	SAME_OFFSET(kfd_ioctl_get_tile_config_args, tile_config_ptr, get_tile_config_args,
		    tile_config_ptr);
	SAME_OFFSET(kfd_ioctl_get_tile_config_args, macro_tile_config_ptr, get_tile_config_args,
		    macro_tile_config_ptr);
	SAME_OFFSET(kfd_ioctl_get_tile_config_args, num_tile_configs, get_tile_config_args,
		    num_tile_configs);
	SAME_OFFSET(kfd_ioctl_get_tile_config_args, num_macro_tile_configs, get_tile_config_args,
		    num_macro_tile_configs);
	SAME_OFFSET(kfd_ioctl_get_tile_config_args, gpu_id, get_tile_config_args, gpu_id);
	SAME_OFFSET(kfd_ioctl_get_tile_config_args, gb_addr_config, get_tile_config_args,
		    gb_addr_config);
	SAME_OFFSET(kfd_ioctl_get_tile_config_args, num_banks, get_tile_config_args, num_banks);
	SAME_OFFSET(kfd_ioctl_get_tile_config_args, num_ranks, get_tile_config_args, num_ranks);
	SAME_SIZE(kfd_ioctl_set_trap_handler_args, set_trap_handler_args);
	SAME_OFFSET(kfd_ioctl_set_trap_handler_args, tba_addr, set_trap_handler_args, tba_addr);
	SAME_OFFSET(kfd_ioctl_set_trap_handler_args, tma_addr, set_trap_handler_args, tma_addr);
	SAME_OFFSET(kfd_ioctl_set_trap_handler_args, gpu_id, set_trap_handler_args, gpu_id);
	SAME_SIZE(kfd_ioctl_set_cu_mask_args, set_cu_mask_args);
	SAME_OFFSET(kfd_ioctl_set_cu_mask_args, queue_id, set_cu_mask_args, queue_id);
	SAME_OFFSET(kfd_ioctl_set_cu_mask_args, num_cu_mask, set_cu_mask_args, num_cu_mask);
	SAME_OFFSET(kfd_ioctl_set_cu_mask_args, cu_mask_ptr, set_cu_mask_args, cu_mask_ptr);
	SAME_SIZE(kfd_ioctl_get_queue_wave_state_args, get_queue_wave_state_args);
	SAME_OFFSET(kfd_ioctl_get_queue_wave_state_args, ctl_stack_address,
		    get_queue_wave_state_args, ctl_stack_address);
	SAME_OFFSET(kfd_ioctl_get_queue_wave_state_args, ctl_stack_used_size,
		    get_queue_wave_state_args, ctl_stack_used_size);
	SAME_OFFSET(kfd_ioctl_get_queue_wave_state_args, save_area_used_size,
		    get_queue_wave_state_args, save_area_used_size);
	SAME_OFFSET(kfd_ioctl_get_queue_wave_state_args, queue_id, get_queue_wave_state_args,
		    queue_id);
	SAME_SIZE(kfd_ioctl_smi_events_args, smi_events_args);
	SAME_OFFSET(kfd_ioctl_smi_events_args, gpuid, smi_events_args, gpu_id);
	SAME_OFFSET(kfd_ioctl_smi_events_args, anon_fd, smi_events_args, anon_fd);
	SAME_SIZE(kfd_ioctl_svm_args, svm_args);
	SAME_OFFSET(kfd_ioctl_svm_args, start_addr, svm_args, start_addr);
	SAME_OFFSET(kfd_ioctl_svm_args, size, svm_args, size);
	SAME_OFFSET(kfd_ioctl_svm_args, op, svm_args, op);
	SAME_OFFSET(kfd_ioctl_svm_args, nattr, svm_args, nattr);
	SAME_SIZE(kfd_ioctl_set_xnack_mode_args, set_xnack_mode_args);
	SAME_OFFSET(kfd_ioctl_set_xnack_mode_args, xnack_enabled, set_xnack_mode_args,
		    xnack_enabled);
	SAME_SIZE(kfd_ioctl_criu_args, criu_args);
	SAME_OFFSET(kfd_ioctl_criu_args, devices, criu_args, devices_ptr);
	SAME_OFFSET(kfd_ioctl_criu_args, bos, criu_args, bos_ptr);
	SAME_OFFSET(kfd_ioctl_criu_args, priv_data, criu_args, priv_data_ptr);
	SAME_OFFSET(kfd_ioctl_criu_args, priv_data_size, criu_args, priv_data_size);
	SAME_OFFSET(kfd_ioctl_criu_args, num_devices, criu_args, num_devices);
	SAME_OFFSET(kfd_ioctl_criu_args, num_bos, criu_args, num_bos);
	SAME_OFFSET(kfd_ioctl_criu_args, num_objects, criu_args, num_objects);
	SAME_OFFSET(kfd_ioctl_criu_args, pid, criu_args, pid);
	SAME_OFFSET(kfd_ioctl_criu_args, op, criu_args, op);
	SAME_SIZE(kfd_ioctl_get_available_memory_args, available_memory_args);
	SAME_OFFSET(kfd_ioctl_get_available_memory_args, available, available_memory_args,
		    available);
	SAME_OFFSET(kfd_ioctl_get_available_memory_args, gpu_id, available_memory_args, gpu_id);
	SAME_SIZE(kfd_ioctl_runtime_enable_args, runtime_enable_args);
	SAME_OFFSET(kfd_ioctl_runtime_enable_args, r_debug, runtime_enable_args, r_debug);
	SAME_OFFSET(kfd_ioctl_runtime_enable_args, mode_mask, runtime_enable_args, mode_mask);
	SAME_OFFSET(kfd_ioctl_runtime_enable_args, capabilities_mask, runtime_enable_args,
		    capabilities_mask);
	SAME_SIZE(kfd_ioctl_dbg_register_args, dbg_register_args);
	SAME_OFFSET(kfd_ioctl_dbg_register_args, gpu_id, dbg_register_args, gpu_id);
	SAME_SIZE(kfd_ioctl_dbg_unregister_args, dbg_register_args);
	SAME_OFFSET(kfd_ioctl_dbg_unregister_args, gpu_id, dbg_register_args, gpu_id);
	SAME_SIZE(kfd_ioctl_dbg_address_watch_args, dbg_buffer_args);
	SAME_OFFSET(kfd_ioctl_dbg_address_watch_args, content_ptr, dbg_buffer_args, content_ptr);
	SAME_OFFSET(kfd_ioctl_dbg_address_watch_args, gpu_id, dbg_buffer_args, gpu_id);
	SAME_OFFSET(kfd_ioctl_dbg_address_watch_args, buf_size_in_bytes, dbg_buffer_args, buf_size);
	SAME_SIZE(kfd_ioctl_dbg_wave_control_args, dbg_buffer_args);
	SAME_OFFSET(kfd_ioctl_dbg_wave_control_args, content_ptr, dbg_buffer_args, content_ptr);
	SAME_OFFSET(kfd_ioctl_dbg_wave_control_args, gpu_id, dbg_buffer_args, gpu_id);
	SAME_OFFSET(kfd_ioctl_dbg_wave_control_args, buf_size_in_bytes, dbg_buffer_args, buf_size);
	SAME_SIZE(kfd_ioctl_create_event_args, create_event_args);
	SAME_OFFSET(kfd_ioctl_create_event_args, event_page_offset, create_event_args,
		    event_page_offset);
	SAME_OFFSET(kfd_ioctl_create_event_args, event_trigger_data, create_event_args,
		    event_trigger_data);
	SAME_OFFSET(kfd_ioctl_create_event_args, event_type, create_event_args, event_type);
	SAME_OFFSET(kfd_ioctl_create_event_args, auto_reset, create_event_args, auto_reset);
	SAME_OFFSET(kfd_ioctl_create_event_args, node_id, create_event_args, node_id);
	SAME_OFFSET(kfd_ioctl_create_event_args, event_id, create_event_args, event_id);
	SAME_OFFSET(kfd_ioctl_create_event_args, event_slot_index, create_event_args,
		    event_slot_index);
	SAME_SIZE(kfd_ioctl_destroy_event_args, event_args);
	SAME_OFFSET(kfd_ioctl_destroy_event_args, event_id, event_args, event_id);
	SAME_SIZE(kfd_ioctl_set_event_args, event_args);
	SAME_OFFSET(kfd_ioctl_set_event_args, event_id, event_args, event_id);
	SAME_SIZE(kfd_ioctl_reset_event_args, event_args);
	SAME_OFFSET(kfd_ioctl_reset_event_args, event_id, event_args, event_id);
	SAME_SIZE(kfd_hsa_memory_exception_data, memory_exception_data);
	SAME_OFFSET(kfd_hsa_memory_exception_data, failure.NotPresent, memory_exception_data,
		    not_present);
	SAME_OFFSET(kfd_hsa_memory_exception_data, failure.ReadOnly, memory_exception_data,
		    read_only);
	SAME_OFFSET(kfd_hsa_memory_exception_data, failure.NoExecute, memory_exception_data,
		    no_execute);
	SAME_OFFSET(kfd_hsa_memory_exception_data, failure.imprecise, memory_exception_data,
		    imprecise);
	SAME_OFFSET(kfd_hsa_memory_exception_data, va, memory_exception_data, va);
	SAME_OFFSET(kfd_hsa_memory_exception_data, gpu_id, memory_exception_data, gpu_id);
	SAME_OFFSET(kfd_hsa_memory_exception_data, ErrorType, memory_exception_data, error_type);
	SAME_SIZE(kfd_hsa_hw_exception_data, hw_exception_data);
	SAME_OFFSET(kfd_hsa_hw_exception_data, reset_type, hw_exception_data, reset_type);
	SAME_OFFSET(kfd_hsa_hw_exception_data, reset_cause, hw_exception_data, reset_cause);
	SAME_OFFSET(kfd_hsa_hw_exception_data, memory_lost, hw_exception_data, memory_lost);
	SAME_OFFSET(kfd_hsa_hw_exception_data, gpu_id, hw_exception_data, gpu_id);
	SAME_SIZE(kfd_event_data, event_data);
	SAME_OFFSET(kfd_event_data, kfd_event_data_ext, event_data, ext);
	SAME_OFFSET(kfd_event_data, event_id, event_data, event_id);
	SAME_SIZE(kfd_ioctl_wait_events_args, wait_events_args);
	SAME_OFFSET(kfd_ioctl_wait_events_args, events_ptr, wait_events_args, events_ptr);
	SAME_OFFSET(kfd_ioctl_wait_events_args, num_events, wait_events_args, num_events);
	SAME_OFFSET(kfd_ioctl_wait_events_args, wait_for_all, wait_events_args, wait_for_all);
	SAME_OFFSET(kfd_ioctl_wait_events_args, timeout, wait_events_args, timeout_ms);
	SAME_OFFSET(kfd_ioctl_wait_events_args, wait_result, wait_events_args, wait_result);
}

static void debug_records(void)
{
	SAME_SIZE(kfd_context_save_area_header, save_area_header);
	SAME_OFFSET(kfd_context_save_area_header, wave_state.control_stack_offset, save_area_header,
		    control_stack_offset);
	SAME_OFFSET(kfd_context_save_area_header, wave_state.control_stack_size, save_area_header,
		    control_stack_size);
	SAME_OFFSET(kfd_context_save_area_header, wave_state.wave_state_offset, save_area_header,
		    wave_state_offset);
	SAME_OFFSET(kfd_context_save_area_header, wave_state.wave_state_size, save_area_header,
		    wave_state_size);
	SAME_OFFSET(kfd_context_save_area_header, debug_offset, save_area_header, debug_offset);
	SAME_OFFSET(kfd_context_save_area_header, debug_size, save_area_header, debug_size);
	SAME_OFFSET(kfd_context_save_area_header, err_payload_addr, save_area_header,
		    err_payload_addr);
	SAME_OFFSET(kfd_context_save_area_header, err_event_id, save_area_header, err_event_id);
	SAME_SIZE(kfd_runtime_info, runtime_info);
	SAME_OFFSET(kfd_runtime_info, r_debug, runtime_info, r_debug);
	SAME_OFFSET(kfd_runtime_info, runtime_state, runtime_info, runtime_state);
	SAME_OFFSET(kfd_runtime_info, ttmp_setup, runtime_info, ttmp_setup);
	SAME_SIZE(kfd_queue_snapshot_entry, queue_entry);
	SAME_OFFSET(kfd_queue_snapshot_entry, exception_status, queue_entry, exception_status);
	SAME_OFFSET(kfd_queue_snapshot_entry, ring_base_address, queue_entry, ring_base_address);
	SAME_OFFSET(kfd_queue_snapshot_entry, write_pointer_address, queue_entry,
		    write_pointer_address);
	SAME_OFFSET(kfd_queue_snapshot_entry, read_pointer_address, queue_entry,
		    read_pointer_address);
	SAME_OFFSET(kfd_queue_snapshot_entry, ctx_save_restore_address, queue_entry,
		    ctx_save_restore_address);
	SAME_OFFSET(kfd_queue_snapshot_entry, queue_id, queue_entry, queue_id);
	SAME_OFFSET(kfd_queue_snapshot_entry, gpu_id, queue_entry, gpu_id);
	SAME_OFFSET(kfd_queue_snapshot_entry, ring_size, queue_entry, ring_size);
	SAME_OFFSET(kfd_queue_snapshot_entry, queue_type, queue_entry, queue_type);
	SAME_OFFSET(kfd_queue_snapshot_entry, ctx_save_restore_area_size, queue_entry,
		    ctx_save_restore_area_size);
	SAME_SIZE(kfd_ioctl_dbg_trap_args, dbg_args);
	SAME_OFFSET(kfd_ioctl_dbg_trap_args, pid, dbg_args, pid);
	SAME_OFFSET(kfd_ioctl_dbg_trap_args, op, dbg_args, op);
	SAME_OFFSET(kfd_ioctl_dbg_trap_args, enable.exception_mask, dbg_args,
		    enable.exception_mask);
	SAME_OFFSET(kfd_ioctl_dbg_trap_args, enable.rinfo_ptr, dbg_args, enable.rinfo_ptr);
	SAME_OFFSET(kfd_ioctl_dbg_trap_args, enable.rinfo_size, dbg_args, enable.rinfo_size);
	SAME_OFFSET(kfd_ioctl_dbg_trap_args, enable.dbg_fd, dbg_args, enable.dbg_fd);
	SAME_OFFSET(kfd_ioctl_dbg_trap_args, send_runtime_event.exception_mask, dbg_args,
		    send_runtime_event.exception_mask);
	SAME_OFFSET(kfd_ioctl_dbg_trap_args, send_runtime_event.gpu_id, dbg_args,
		    send_runtime_event.gpu_id);
	SAME_OFFSET(kfd_ioctl_dbg_trap_args, send_runtime_event.queue_id, dbg_args,
		    send_runtime_event.queue_id);
	SAME_OFFSET(kfd_ioctl_dbg_trap_args, set_exceptions_enabled.exception_mask, dbg_args,
		    set_exceptions_enabled.exception_mask);
	SAME_OFFSET(kfd_ioctl_dbg_trap_args, launch_override.override_mode, dbg_args,
		    launch_override.override_mode);
	SAME_OFFSET(kfd_ioctl_dbg_trap_args, launch_override.enable_mask, dbg_args,
		    launch_override.enable_mask);
	SAME_OFFSET(kfd_ioctl_dbg_trap_args, launch_override.support_request_mask, dbg_args,
		    launch_override.support_request_mask);
	SAME_OFFSET(kfd_ioctl_dbg_trap_args, launch_mode.launch_mode, dbg_args,
		    launch_mode.launch_mode);
	SAME_OFFSET(kfd_ioctl_dbg_trap_args, suspend_queues.exception_mask, dbg_args,
		    suspend.exception_mask);
	SAME_OFFSET(kfd_ioctl_dbg_trap_args, suspend_queues.queue_array_ptr, dbg_args,
		    suspend.queue_array_ptr);
	SAME_OFFSET(kfd_ioctl_dbg_trap_args, suspend_queues.num_queues, dbg_args,
		    suspend.num_queues);
	SAME_OFFSET(kfd_ioctl_dbg_trap_args, suspend_queues.grace_period, dbg_args,
		    suspend.grace_period);
	SAME_OFFSET(kfd_ioctl_dbg_trap_args, resume_queues.queue_array_ptr, dbg_args,
		    resume.queue_array_ptr);
	SAME_OFFSET(kfd_ioctl_dbg_trap_args, resume_queues.num_queues, dbg_args, resume.num_queues);
	SAME_OFFSET(kfd_ioctl_dbg_trap_args, set_node_address_watch.address, dbg_args,
		    set_watch.address);
	SAME_OFFSET(kfd_ioctl_dbg_trap_args, set_node_address_watch.mode, dbg_args, set_watch.mode);
	SAME_OFFSET(kfd_ioctl_dbg_trap_args, set_node_address_watch.mask, dbg_args, set_watch.mask);
	SAME_OFFSET(kfd_ioctl_dbg_trap_args, set_node_address_watch.gpu_id, dbg_args,
		    set_watch.gpu_id);
	SAME_OFFSET(kfd_ioctl_dbg_trap_args, set_node_address_watch.id, dbg_args, set_watch.id);
	SAME_OFFSET(kfd_ioctl_dbg_trap_args, clear_node_address_watch.gpu_id, dbg_args,
		    clear_watch.gpu_id);
	SAME_OFFSET(kfd_ioctl_dbg_trap_args, clear_node_address_watch.id, dbg_args, clear_watch.id);
	SAME_OFFSET(kfd_ioctl_dbg_trap_args, set_flags.flags, dbg_args, set_flags.flags);
	SAME_OFFSET(kfd_ioctl_dbg_trap_args, query_debug_event.exception_mask, dbg_args,
		    query_event.exception_mask);
	SAME_OFFSET(kfd_ioctl_dbg_trap_args, query_debug_event.gpu_id, dbg_args,
		    query_event.gpu_id);
	SAME_OFFSET(kfd_ioctl_dbg_trap_args, query_debug_event.queue_id, dbg_args,
		    query_event.queue_id);
	SAME_OFFSET(kfd_ioctl_dbg_trap_args, query_exception_info.info_ptr, dbg_args,
		    query_info.info_ptr);
	SAME_OFFSET(kfd_ioctl_dbg_trap_args, query_exception_info.info_size, dbg_args,
		    query_info.info_size);
	SAME_OFFSET(kfd_ioctl_dbg_trap_args, query_exception_info.source_id, dbg_args,
		    query_info.source_id);
	SAME_OFFSET(kfd_ioctl_dbg_trap_args, query_exception_info.exception_code, dbg_args,
		    query_info.exception_code);
	SAME_OFFSET(kfd_ioctl_dbg_trap_args, query_exception_info.clear_exception, dbg_args,
		    query_info.clear_exception);
	SAME_OFFSET(kfd_ioctl_dbg_trap_args, queue_snapshot.exception_mask, dbg_args,
		    queue_snapshot.exception_mask);
	SAME_OFFSET(kfd_ioctl_dbg_trap_args, queue_snapshot.snapshot_buf_ptr, dbg_args,
		    queue_snapshot.snapshot_buf_ptr);
	SAME_OFFSET(kfd_ioctl_dbg_trap_args, queue_snapshot.num_queues, dbg_args,
		    queue_snapshot.num_queues);
	SAME_OFFSET(kfd_ioctl_dbg_trap_args, queue_snapshot.entry_size, dbg_args,
		    queue_snapshot.entry_size);
	SAME_OFFSET(kfd_ioctl_dbg_trap_args, device_snapshot.exception_mask, dbg_args,
		    device_snapshot.exception_mask);
	SAME_OFFSET(kfd_ioctl_dbg_trap_args, device_snapshot.snapshot_buf_ptr, dbg_args,
		    device_snapshot.snapshot_buf_ptr);
	SAME_OFFSET(kfd_ioctl_dbg_trap_args, device_snapshot.num_devices, dbg_args,
		    device_snapshot.num_devices);
	SAME_OFFSET(kfd_ioctl_dbg_trap_args, device_snapshot.entry_size, dbg_args,
		    device_snapshot.entry_size);
	SAME_OFFSET(kfd_dbg_device_info_entry, exception_status, device_entry, exception_status);
	SAME_OFFSET(kfd_dbg_device_info_entry, lds_base, device_entry, lds_base);
	SAME_OFFSET(kfd_dbg_device_info_entry, lds_limit, device_entry, lds_limit);
	SAME_OFFSET(kfd_dbg_device_info_entry, scratch_base, device_entry, scratch_base);
	SAME_OFFSET(kfd_dbg_device_info_entry, scratch_limit, device_entry, scratch_limit);
	SAME_OFFSET(kfd_dbg_device_info_entry, gpuvm_base, device_entry, gpuvm_base);
	SAME_OFFSET(kfd_dbg_device_info_entry, gpuvm_limit, device_entry, gpuvm_limit);
	SAME_OFFSET(kfd_dbg_device_info_entry, gpu_id, device_entry, gpu_id);
	SAME_OFFSET(kfd_dbg_device_info_entry, location_id, device_entry, location_id);
	SAME_OFFSET(kfd_dbg_device_info_entry, vendor_id, device_entry, vendor_id);
	SAME_OFFSET(kfd_dbg_device_info_entry, device_id, device_entry, device_id);
	SAME_OFFSET(kfd_dbg_device_info_entry, revision_id, device_entry, revision_id);
	SAME_OFFSET(kfd_dbg_device_info_entry, subsystem_vendor_id, device_entry,
		    subsystem_vendor_id);
	SAME_OFFSET(kfd_dbg_device_info_entry, subsystem_device_id, device_entry,
		    subsystem_device_id);
	SAME_OFFSET(kfd_dbg_device_info_entry, fw_version, device_entry, fw_version);
	SAME_OFFSET(kfd_dbg_device_info_entry, gfx_target_version, device_entry,
		    gfx_target_version);
	SAME_OFFSET(kfd_dbg_device_info_entry, simd_count, device_entry, simd_count);
	SAME_OFFSET(kfd_dbg_device_info_entry, max_waves_per_simd, device_entry,
		    max_waves_per_simd);
	SAME_OFFSET(kfd_dbg_device_info_entry, array_count, device_entry, array_count);
	SAME_OFFSET(kfd_dbg_device_info_entry, simd_arrays_per_engine, device_entry,
		    simd_arrays_per_engine);
	SAME_OFFSET(kfd_dbg_device_info_entry, num_xcc, device_entry, num_xcc);
	SAME_OFFSET(kfd_dbg_device_info_entry, capability, device_entry, capability);
	SAME_OFFSET(kfd_dbg_device_info_entry, debug_prop, device_entry, debug_prop);
}

/* The header's bit 31 constants are signed shifts. */
__attribute__((no_sanitize("undefined"))) static void constants(void)
{
	SAME_VALUE32(AMDKFD_IOC_GET_VERSION, KFDABI_IOC_GET_VERSION);
	SAME_VALUE32(AMDKFD_IOC_DESTROY_QUEUE, KFDABI_IOC_DESTROY_QUEUE);
	SAME_VALUE32(AMDKFD_IOC_SET_MEMORY_POLICY, KFDABI_IOC_SET_MEMORY_POLICY);
	SAME_VALUE32(AMDKFD_IOC_GET_CLOCK_COUNTERS, KFDABI_IOC_GET_CLOCK_COUNTERS);
	SAME_VALUE32(AMDKFD_IOC_GET_PROCESS_APERTURES, KFDABI_IOC_GET_PROCESS_APERTURES);
	SAME_VALUE32(AMDKFD_IOC_UPDATE_QUEUE, KFDABI_IOC_UPDATE_QUEUE);
	SAME_VALUE32(AMDKFD_IOC_CREATE_EVENT, KFDABI_IOC_CREATE_EVENT);
	SAME_VALUE32(AMDKFD_IOC_DESTROY_EVENT, KFDABI_IOC_DESTROY_EVENT);
	SAME_VALUE32(AMDKFD_IOC_SET_EVENT, KFDABI_IOC_SET_EVENT);
	SAME_VALUE32(AMDKFD_IOC_RESET_EVENT, KFDABI_IOC_RESET_EVENT);
	SAME_VALUE32(AMDKFD_IOC_WAIT_EVENTS, KFDABI_IOC_WAIT_EVENTS);
	SAME_VALUE32(AMDKFD_IOC_SET_SCRATCH_BACKING_VA, KFDABI_IOC_SET_SCRATCH_BACKING_VA);
	SAME_VALUE32(AMDKFD_IOC_GET_TILE_CONFIG, KFDABI_IOC_GET_TILE_CONFIG);
	SAME_VALUE32(AMDKFD_IOC_SET_TRAP_HANDLER, KFDABI_IOC_SET_TRAP_HANDLER);
	SAME_VALUE32(AMDKFD_IOC_GET_PROCESS_APERTURES_NEW, KFDABI_IOC_GET_PROCESS_APERTURES_NEW);
	SAME_VALUE32(AMDKFD_IOC_ACQUIRE_VM, KFDABI_IOC_ACQUIRE_VM);
	SAME_VALUE32(AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, KFDABI_IOC_ALLOC_MEMORY_OF_GPU);
	SAME_VALUE32(AMDKFD_IOC_FREE_MEMORY_OF_GPU, KFDABI_IOC_FREE_MEMORY_OF_GPU);
	SAME_VALUE32(AMDKFD_IOC_MAP_MEMORY_TO_GPU, KFDABI_IOC_MAP_MEMORY_TO_GPU);
	SAME_VALUE32(AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU, KFDABI_IOC_UNMAP_MEMORY_FROM_GPU);
	SAME_VALUE32(AMDKFD_IOC_SET_CU_MASK, KFDABI_IOC_SET_CU_MASK);
	SAME_VALUE32(AMDKFD_IOC_GET_QUEUE_WAVE_STATE, KFDABI_IOC_GET_QUEUE_WAVE_STATE);
	SAME_VALUE32(AMDKFD_IOC_SMI_EVENTS, KFDABI_IOC_SMI_EVENTS);
	SAME_VALUE32(AMDKFD_IOC_SVM, KFDABI_IOC_SVM);
	SAME_VALUE32(AMDKFD_IOC_SET_XNACK_MODE, KFDABI_IOC_SET_XNACK_MODE);
	SAME_VALUE32(AMDKFD_IOC_CRIU_OP, KFDABI_IOC_CRIU_OP);
	SAME_VALUE32(AMDKFD_IOC_AVAILABLE_MEMORY, KFDABI_IOC_AVAILABLE_MEMORY);
	SAME_VALUE32(AMDKFD_IOC_RUNTIME_ENABLE, KFDABI_IOC_RUNTIME_ENABLE);
	SAME_VALUE32(AMDKFD_IOC_DBG_TRAP, KFDABI_IOC_DBG_TRAP);
	SAME_VALUE32(AMDKFD_IOC_DBG_REGISTER_DEPRECATED, KFDABI_IOC_DBG_REGISTER);
	SAME_VALUE32(AMDKFD_IOC_DBG_UNREGISTER_DEPRECATED, KFDABI_IOC_DBG_UNREGISTER);
	SAME_VALUE32(AMDKFD_IOC_DBG_ADDRESS_WATCH_DEPRECATED, KFDABI_IOC_DBG_ADDRESS_WATCH);
	SAME_VALUE32(AMDKFD_IOC_DBG_WAVE_CONTROL_DEPRECATED, KFDABI_IOC_DBG_WAVE_CONTROL);
	SAME_VALUE32(KFD_IOC_DBG_TRAP_ENABLE, KFDABI_DBG_ENABLE);
	SAME_VALUE32(KFD_IOC_DBG_TRAP_DISABLE, KFDABI_DBG_DISABLE);
	SAME_VALUE32(KFD_IOC_DBG_TRAP_SEND_RUNTIME_EVENT, KFDABI_DBG_SEND_RUNTIME_EVENT);
	SAME_VALUE32(KFD_IOC_DBG_TRAP_SET_EXCEPTIONS_ENABLED, KFDABI_DBG_SET_EXCEPTIONS_ENABLED);
	SAME_VALUE32(KFD_IOC_DBG_TRAP_SET_WAVE_LAUNCH_OVERRIDE,
		     KFDABI_DBG_SET_WAVE_LAUNCH_OVERRIDE);
	SAME_VALUE32(KFD_IOC_DBG_TRAP_SET_WAVE_LAUNCH_MODE, KFDABI_DBG_SET_WAVE_LAUNCH_MODE);
	SAME_VALUE32(KFD_IOC_DBG_TRAP_SUSPEND_QUEUES, KFDABI_DBG_SUSPEND_QUEUES);
	SAME_VALUE32(KFD_IOC_DBG_TRAP_RESUME_QUEUES, KFDABI_DBG_RESUME_QUEUES);
	SAME_VALUE32(KFD_IOC_DBG_TRAP_SET_NODE_ADDRESS_WATCH, KFDABI_DBG_SET_NODE_ADDRESS_WATCH);
	SAME_VALUE32(KFD_IOC_DBG_TRAP_CLEAR_NODE_ADDRESS_WATCH,
		     KFDABI_DBG_CLEAR_NODE_ADDRESS_WATCH);
	SAME_VALUE32(KFD_IOC_DBG_TRAP_SET_FLAGS, KFDABI_DBG_SET_FLAGS);
	SAME_VALUE32(KFD_IOC_DBG_TRAP_QUERY_DEBUG_EVENT, KFDABI_DBG_QUERY_DEBUG_EVENT);
	SAME_VALUE32(KFD_IOC_DBG_TRAP_QUERY_EXCEPTION_INFO, KFDABI_DBG_QUERY_EXCEPTION_INFO);
	SAME_VALUE32(KFD_IOC_DBG_TRAP_GET_QUEUE_SNAPSHOT, KFDABI_DBG_GET_QUEUE_SNAPSHOT);
	SAME_VALUE32(KFD_IOC_DBG_TRAP_GET_DEVICE_SNAPSHOT, KFDABI_DBG_GET_DEVICE_SNAPSHOT);
	SAME_VALUE32(KFD_IOC_QUEUE_TYPE_COMPUTE, KFDABI_QUEUE_TYPE_COMPUTE);
	SAME_VALUE32(KFD_IOC_QUEUE_TYPE_SDMA, KFDABI_QUEUE_TYPE_SDMA);
	SAME_VALUE32(KFD_IOC_QUEUE_TYPE_COMPUTE_AQL, KFDABI_QUEUE_TYPE_COMPUTE_AQL);
	SAME_VALUE32(KFD_IOC_QUEUE_TYPE_SDMA_XGMI, KFDABI_QUEUE_TYPE_SDMA_XGMI);
	SAME_VALUE32(KFD_IOC_EVENT_SIGNAL, KFDABI_EVENT_SIGNAL);
	SAME_VALUE32(KFD_IOC_EVENT_HW_EXCEPTION, KFDABI_EVENT_HW_EXCEPTION);
	SAME_VALUE32(KFD_IOC_EVENT_DEBUG_EVENT, KFDABI_EVENT_DEBUG);
	SAME_VALUE32(KFD_IOC_EVENT_MEMORY, KFDABI_EVENT_MEMORY);
	SAME_VALUE32(KFD_IOC_WAIT_RESULT_COMPLETE, KFDABI_WAIT_COMPLETE);
	SAME_VALUE32(KFD_IOC_WAIT_RESULT_TIMEOUT, KFDABI_WAIT_TIMEOUT);
	SAME_VALUE32(KFD_IOC_WAIT_RESULT_FAIL, KFDABI_WAIT_FAIL);
	SAME_VALUE32(KFD_SIGNAL_EVENT_LIMIT, KFDABI_SIGNAL_EVENT_LIMIT);
	SAME_VALUE32(KFD_MEM_ERR_NO_RAS, KFDABI_MEM_ERROR_NONE);
	SAME_VALUE32(KFD_MEM_ERR_SRAM_ECC, KFDABI_MEM_ERROR_SRAM_ECC);
	SAME_VALUE32(KFD_MEM_ERR_POISON_CONSUMED, KFDABI_MEM_ERROR_POISON);
	SAME_VALUE32(KFD_MEM_ERR_GPU_HANG, KFDABI_MEM_ERROR_GPU_HANG);
	SAME_VALUE32(KFD_RUNTIME_ENABLE_MODE_ENABLE_MASK, KFDABI_RUNTIME_ENABLE_MODE_ENABLE);
	SAME_VALUE32(KFD_RUNTIME_ENABLE_MODE_TTMP_SAVE_MASK, KFDABI_RUNTIME_ENABLE_MODE_TTMP_SAVE);
	SAME_VALUE32(DEBUG_RUNTIME_STATE_DISABLED, KFDABI_RUNTIME_STATE_DISABLED);
	SAME_VALUE32(DEBUG_RUNTIME_STATE_ENABLED, KFDABI_RUNTIME_STATE_ENABLED);
	SAME_VALUE32(DEBUG_RUNTIME_STATE_ENABLED_BUSY, KFDABI_RUNTIME_STATE_ENABLED_BUSY);
	SAME_VALUE32(DEBUG_RUNTIME_STATE_ENABLED_ERROR, KFDABI_RUNTIME_STATE_ENABLED_ERROR);
	SAME_VALUE32(KFD_DBG_TRAP_OVERRIDE_OR, KFDABI_OVERRIDE_OR);
	SAME_VALUE32(KFD_DBG_TRAP_OVERRIDE_REPLACE, KFDABI_OVERRIDE_REPLACE);
	SAME_VALUE32(KFD_DBG_TRAP_MASK_FP_INVALID, KFDABI_TRAP_FP_INVALID);
	SAME_VALUE32(KFD_DBG_TRAP_MASK_FP_INPUT_DENORMAL, KFDABI_TRAP_FP_INPUT_DENORMAL);
	SAME_VALUE32(KFD_DBG_TRAP_MASK_FP_DIVIDE_BY_ZERO, KFDABI_TRAP_FP_DIVIDE_BY_ZERO);
	SAME_VALUE32(KFD_DBG_TRAP_MASK_FP_OVERFLOW, KFDABI_TRAP_FP_OVERFLOW);
	SAME_VALUE32(KFD_DBG_TRAP_MASK_FP_UNDERFLOW, KFDABI_TRAP_FP_UNDERFLOW);
	SAME_VALUE32(KFD_DBG_TRAP_MASK_FP_INEXACT, KFDABI_TRAP_FP_INEXACT);
	SAME_VALUE32(KFD_DBG_TRAP_MASK_INT_DIVIDE_BY_ZERO, KFDABI_TRAP_INT_DIVIDE_BY_ZERO);
	SAME_VALUE32(KFD_DBG_TRAP_MASK_DBG_ADDRESS_WATCH, KFDABI_TRAP_ADDRESS_WATCH);
	SAME_VALUE32(KFD_DBG_TRAP_MASK_DBG_MEMORY_VIOLATION, KFDABI_TRAP_MEMORY_VIOLATION);
	SAME_VALUE32(KFD_DBG_TRAP_MASK_TRAP_ON_WAVE_START, KFDABI_TRAP_WAVE_START);
	SAME_VALUE32(KFD_DBG_TRAP_MASK_TRAP_ON_WAVE_END, KFDABI_TRAP_WAVE_END);
	SAME_VALUE32(KFD_DBG_TRAP_WAVE_LAUNCH_MODE_NORMAL, KFDABI_LAUNCH_MODE_NORMAL);
	SAME_VALUE32(KFD_DBG_TRAP_WAVE_LAUNCH_MODE_HALT, KFDABI_LAUNCH_MODE_HALT);
	SAME_VALUE32(KFD_DBG_TRAP_WAVE_LAUNCH_MODE_DEBUG, KFDABI_LAUNCH_MODE_DEBUG);
	SAME_VALUE32(KFD_DBG_TRAP_ADDRESS_WATCH_MODE_READ, KFDABI_WATCH_MODE_READ);
	SAME_VALUE32(KFD_DBG_TRAP_ADDRESS_WATCH_MODE_NONREAD, KFDABI_WATCH_MODE_NONREAD);
	SAME_VALUE32(KFD_DBG_TRAP_ADDRESS_WATCH_MODE_ATOMIC, KFDABI_WATCH_MODE_ATOMIC);
	SAME_VALUE32(KFD_DBG_TRAP_ADDRESS_WATCH_MODE_ALL, KFDABI_WATCH_MODE_ALL);
	SAME_VALUE32(KFD_DBG_TRAP_FLAG_SINGLE_MEM_OP, KFDABI_FLAG_SINGLE_MEM_OP);
	SAME_VALUE32(KFD_DBG_TRAP_FLAG_SINGLE_ALU_OP, KFDABI_FLAG_SINGLE_ALU_OP);
	SAME_VALUE32(KFD_DBG_QUEUE_ERROR_MASK, KFDABI_QUEUE_ERROR);
	SAME_VALUE32(KFD_DBG_QUEUE_INVALID_MASK, KFDABI_QUEUE_INVALID);
	SAME_VALUE64(KFD_EC_MASK_QUEUE, KFDABI_EC_MASK_QUEUE);
	SAME_VALUE64(KFD_EC_MASK_DEVICE, KFDABI_EC_MASK_DEVICE);
	SAME_VALUE64(KFD_EC_MASK_PROCESS, KFDABI_EC_MASK_PROCESS);
	SAME_VALUE64(KFD_EC_MASK_PACKET, KFDABI_EC_MASK_PACKET);
	SAME_VALUE32(EC_QUEUE_PACKET_DISPATCH_GROUP_SEGMENT_SIZE_INVALID,
		     KFDABI_EC_QUEUE_PACKET_DISPATCH_GROUP_SIZE_INVALID);
	SAME_VALUE32(EC_QUEUE_PACKET_DISPATCH_WORK_GROUP_SIZE_INVALID,
		     KFDABI_EC_QUEUE_PACKET_DISPATCH_WORKGROUP_INVALID);
	SAME_VALUE32(EC_NONE, KFDABI_EC_NONE);
	SAME_VALUE32(EC_QUEUE_WAVE_ABORT, KFDABI_EC_QUEUE_WAVE_ABORT);
	SAME_VALUE32(EC_QUEUE_WAVE_TRAP, KFDABI_EC_QUEUE_WAVE_TRAP);
	SAME_VALUE32(EC_QUEUE_WAVE_MATH_ERROR, KFDABI_EC_QUEUE_WAVE_MATH_ERROR);
	SAME_VALUE32(EC_QUEUE_WAVE_ILLEGAL_INSTRUCTION, KFDABI_EC_QUEUE_WAVE_ILLEGAL_INSTRUCTION);
	SAME_VALUE32(EC_QUEUE_WAVE_MEMORY_VIOLATION, KFDABI_EC_QUEUE_WAVE_MEMORY_VIOLATION);
	SAME_VALUE32(EC_QUEUE_WAVE_APERTURE_VIOLATION, KFDABI_EC_QUEUE_WAVE_APERTURE_VIOLATION);
	SAME_VALUE32(EC_QUEUE_PACKET_DISPATCH_DIM_INVALID,
		     KFDABI_EC_QUEUE_PACKET_DISPATCH_DIM_INVALID);
	SAME_VALUE32(EC_QUEUE_PACKET_DISPATCH_CODE_INVALID,
		     KFDABI_EC_QUEUE_PACKET_DISPATCH_CODE_INVALID);
	SAME_VALUE32(EC_QUEUE_PACKET_RESERVED, KFDABI_EC_QUEUE_PACKET_RESERVED);
	SAME_VALUE32(EC_QUEUE_PACKET_UNSUPPORTED, KFDABI_EC_QUEUE_PACKET_UNSUPPORTED);
	SAME_VALUE32(EC_QUEUE_PACKET_DISPATCH_REGISTER_INVALID,
		     KFDABI_EC_QUEUE_PACKET_DISPATCH_REGISTER_INVALID);
	SAME_VALUE32(EC_QUEUE_PACKET_VENDOR_UNSUPPORTED, KFDABI_EC_QUEUE_PACKET_VENDOR_UNSUPPORTED);
	SAME_VALUE32(EC_QUEUE_PREEMPTION_ERROR, KFDABI_EC_QUEUE_PREEMPTION_ERROR);
	SAME_VALUE32(EC_QUEUE_NEW, KFDABI_EC_QUEUE_NEW);
	SAME_VALUE32(EC_DEVICE_QUEUE_DELETE, KFDABI_EC_DEVICE_QUEUE_DELETE);
	SAME_VALUE32(EC_DEVICE_MEMORY_VIOLATION, KFDABI_EC_DEVICE_MEMORY_VIOLATION);
	SAME_VALUE32(EC_DEVICE_RAS_ERROR, KFDABI_EC_DEVICE_RAS_ERROR);
	SAME_VALUE32(EC_DEVICE_FATAL_HALT, KFDABI_EC_DEVICE_FATAL_HALT);
	SAME_VALUE32(EC_DEVICE_NEW, KFDABI_EC_DEVICE_NEW);
	SAME_VALUE32(EC_PROCESS_RUNTIME, KFDABI_EC_PROCESS_RUNTIME);
	SAME_VALUE32(EC_PROCESS_DEVICE_REMOVE, KFDABI_EC_PROCESS_DEVICE_REMOVE);
	SAME_VALUE32(EC_MAX, KFDABI_EC_MAX);
}

static void arguments_that_grew(void)
{
	SAME_OFFSET(kfd_ioctl_create_queue_args, ring_base_address, create_queue_args,
		    ring_base_address);
	SAME_OFFSET(kfd_ioctl_create_queue_args, write_pointer_address, create_queue_args,
		    write_pointer_address);
	SAME_OFFSET(kfd_ioctl_create_queue_args, read_pointer_address, create_queue_args,
		    read_pointer_address);
	SAME_OFFSET(kfd_ioctl_create_queue_args, doorbell_offset, create_queue_args,
		    doorbell_offset);
	SAME_OFFSET(kfd_ioctl_create_queue_args, ring_size, create_queue_args, ring_size);
	SAME_OFFSET(kfd_ioctl_create_queue_args, gpu_id, create_queue_args, gpu_id);
	SAME_OFFSET(kfd_ioctl_create_queue_args, queue_type, create_queue_args, queue_type);
	SAME_OFFSET(kfd_ioctl_create_queue_args, queue_percentage, create_queue_args,
		    queue_percentage);
	SAME_OFFSET(kfd_ioctl_create_queue_args, queue_priority, create_queue_args, queue_priority);
	SAME_OFFSET(kfd_ioctl_create_queue_args, queue_id, create_queue_args, queue_id);
	SAME_OFFSET(kfd_ioctl_create_queue_args, eop_buffer_address, create_queue_args,
		    eop_buffer_address);
	SAME_OFFSET(kfd_ioctl_create_queue_args, eop_buffer_size, create_queue_args,
		    eop_buffer_size);
	SAME_OFFSET(kfd_ioctl_create_queue_args, ctx_save_restore_address, create_queue_args,
		    ctx_save_restore_address);
	SAME_OFFSET(kfd_ioctl_create_queue_args, ctx_save_restore_size, create_queue_args,
		    ctx_save_restore_size);
	SAME_OFFSET(kfd_ioctl_create_queue_args, ctl_stack_size, create_queue_args, ctl_stack_size);
	if (sizeof(struct kfd_ioctl_create_queue_args) == KFDABI_CREATE_QUEUE_SIZE_V1_16)
		SAME_VALUE32(AMDKFD_IOC_CREATE_QUEUE, KFDABI_IOC_CREATE_QUEUE_V1_16);
	else
		SAME_VALUE32(AMDKFD_IOC_CREATE_QUEUE, KFDABI_IOC_CREATE_QUEUE);
	if (sizeof(struct kfd_dbg_device_info_entry) != KFDABI_DEVICE_ENTRY_SIZE_V1)
		SAME_SIZE(kfd_dbg_device_info_entry, device_entry);
}

#else

static void no_header(void)
{
	test_skip("no <linux/kfd_ioctl.h> with the debug interface (set KFD_UAPI_INCLUDE)");
}
#define general_arguments   no_header
#define debug_records       no_header
#define constants           no_header
#define arguments_that_grew no_header

#endif

/* The public names stand for the same numbers. */
static void public_constants_match(void)
{
	static const struct {
		uint64_t public, abi;
	} rows[] = {
		{KFDTRAP_VERSION_MAJOR, KFDABI_VERSION_MAJOR},
		{KFDTRAP_VERSION_MINOR_DEBUG, KFDABI_VERSION_MINOR_DEBUG},
		{KFDTRAP_QUEUES_MAX, KFDABI_MAX_QUEUES_PER_PROCESS},
		{KFDTRAP_EC_NONE, KFDABI_EC_NONE},
		{KFDTRAP_EC_QUEUE_WAVE_ABORT, KFDABI_EC_QUEUE_WAVE_ABORT},
		{KFDTRAP_EC_QUEUE_WAVE_TRAP, KFDABI_EC_QUEUE_WAVE_TRAP},
		{KFDTRAP_EC_QUEUE_WAVE_MATH_ERROR, KFDABI_EC_QUEUE_WAVE_MATH_ERROR},
		{KFDTRAP_EC_QUEUE_WAVE_ILLEGAL_INSTRUCTION,
		 KFDABI_EC_QUEUE_WAVE_ILLEGAL_INSTRUCTION},
		{KFDTRAP_EC_QUEUE_WAVE_MEMORY_VIOLATION, KFDABI_EC_QUEUE_WAVE_MEMORY_VIOLATION},
		{KFDTRAP_EC_QUEUE_WAVE_APERTURE_VIOLATION, KFDABI_EC_QUEUE_WAVE_APERTURE_VIOLATION},
		{KFDTRAP_EC_QUEUE_PACKET_DISPATCH_DIM_INVALID,
		 KFDABI_EC_QUEUE_PACKET_DISPATCH_DIM_INVALID},
		{KFDTRAP_EC_QUEUE_PACKET_DISPATCH_GROUP_SEGMENT_SIZE_INVALID,
		 KFDABI_EC_QUEUE_PACKET_DISPATCH_GROUP_SIZE_INVALID},
		{KFDTRAP_EC_QUEUE_PACKET_DISPATCH_CODE_INVALID,
		 KFDABI_EC_QUEUE_PACKET_DISPATCH_CODE_INVALID},
		{KFDTRAP_EC_QUEUE_PACKET_RESERVED, KFDABI_EC_QUEUE_PACKET_RESERVED},
		{KFDTRAP_EC_QUEUE_PACKET_UNSUPPORTED, KFDABI_EC_QUEUE_PACKET_UNSUPPORTED},
		{KFDTRAP_EC_QUEUE_PACKET_DISPATCH_WORK_GROUP_SIZE_INVALID,
		 KFDABI_EC_QUEUE_PACKET_DISPATCH_WORKGROUP_INVALID},
		{KFDTRAP_EC_QUEUE_PACKET_DISPATCH_REGISTER_INVALID,
		 KFDABI_EC_QUEUE_PACKET_DISPATCH_REGISTER_INVALID},
		{KFDTRAP_EC_QUEUE_PACKET_VENDOR_UNSUPPORTED,
		 KFDABI_EC_QUEUE_PACKET_VENDOR_UNSUPPORTED},
		{KFDTRAP_EC_QUEUE_PREEMPTION_ERROR, KFDABI_EC_QUEUE_PREEMPTION_ERROR},
		{KFDTRAP_EC_QUEUE_NEW, KFDABI_EC_QUEUE_NEW},
		{KFDTRAP_EC_DEVICE_QUEUE_DELETE, KFDABI_EC_DEVICE_QUEUE_DELETE},
		{KFDTRAP_EC_DEVICE_MEMORY_VIOLATION, KFDABI_EC_DEVICE_MEMORY_VIOLATION},
		{KFDTRAP_EC_DEVICE_RAS_ERROR, KFDABI_EC_DEVICE_RAS_ERROR},
		{KFDTRAP_EC_DEVICE_FATAL_HALT, KFDABI_EC_DEVICE_FATAL_HALT},
		{KFDTRAP_EC_DEVICE_NEW, KFDABI_EC_DEVICE_NEW},
		{KFDTRAP_EC_PROCESS_RUNTIME, KFDABI_EC_PROCESS_RUNTIME},
		{KFDTRAP_EC_PROCESS_DEVICE_REMOVE, KFDABI_EC_PROCESS_DEVICE_REMOVE},
		{KFDTRAP_EC_COUNT, KFDABI_EC_MAX},
		{KFDTRAP_EC_MASK_PACKETS, KFDABI_EC_MASK_PACKET},
		{KFDTRAP_EC_MASK_QUEUE, KFDABI_EC_MASK_QUEUE},
		{KFDTRAP_EC_MASK_DEVICE, KFDABI_EC_MASK_DEVICE},
		{KFDTRAP_EC_MASK_PROCESS, KFDABI_EC_MASK_PROCESS},
		{KFDTRAP_RUNTIME_DISABLED, KFDABI_RUNTIME_STATE_DISABLED},
		{KFDTRAP_RUNTIME_ENABLED, KFDABI_RUNTIME_STATE_ENABLED},
		{KFDTRAP_RUNTIME_ENABLED_BUSY, KFDABI_RUNTIME_STATE_ENABLED_BUSY},
		{KFDTRAP_RUNTIME_ENABLED_ERROR, KFDABI_RUNTIME_STATE_ENABLED_ERROR},
		{KFDTRAP_OVERRIDE_OR, KFDABI_OVERRIDE_OR},
		{KFDTRAP_OVERRIDE_REPLACE, KFDABI_OVERRIDE_REPLACE},
		{KFDTRAP_TRAP_FP_INVALID, KFDABI_TRAP_FP_INVALID},
		{KFDTRAP_TRAP_FP_INPUT_DENORMAL, KFDABI_TRAP_FP_INPUT_DENORMAL},
		{KFDTRAP_TRAP_FP_DIVIDE_BY_ZERO, KFDABI_TRAP_FP_DIVIDE_BY_ZERO},
		{KFDTRAP_TRAP_FP_OVERFLOW, KFDABI_TRAP_FP_OVERFLOW},
		{KFDTRAP_TRAP_FP_UNDERFLOW, KFDABI_TRAP_FP_UNDERFLOW},
		{KFDTRAP_TRAP_FP_INEXACT, KFDABI_TRAP_FP_INEXACT},
		{KFDTRAP_TRAP_INT_DIVIDE_BY_ZERO, KFDABI_TRAP_INT_DIVIDE_BY_ZERO},
		{KFDTRAP_TRAP_ADDRESS_WATCH, KFDABI_TRAP_ADDRESS_WATCH},
		{KFDTRAP_TRAP_MEMORY_VIOLATION, KFDABI_TRAP_MEMORY_VIOLATION},
		{KFDTRAP_TRAP_WAVE_START, KFDABI_TRAP_WAVE_START},
		{KFDTRAP_TRAP_WAVE_END, KFDABI_TRAP_WAVE_END},
		{KFDTRAP_LAUNCH_NORMAL, KFDABI_LAUNCH_MODE_NORMAL},
		{KFDTRAP_LAUNCH_HALT, KFDABI_LAUNCH_MODE_HALT},
		{KFDTRAP_LAUNCH_DEBUG, KFDABI_LAUNCH_MODE_DEBUG},
		{KFDTRAP_WATCH_READ, KFDABI_WATCH_MODE_READ},
		{KFDTRAP_WATCH_NONREAD, KFDABI_WATCH_MODE_NONREAD},
		{KFDTRAP_WATCH_ATOMIC, KFDABI_WATCH_MODE_ATOMIC},
		{KFDTRAP_WATCH_ALL, KFDABI_WATCH_MODE_ALL},
		{KFDTRAP_WATCH_IDS, KFDABI_WATCH_IDS},
		{KFDTRAP_FLAG_SINGLE_MEM_OP, KFDABI_FLAG_SINGLE_MEM_OP},
		{KFDTRAP_FLAG_SINGLE_ALU_OP, KFDABI_FLAG_SINGLE_ALU_OP},
		{KFDTRAP_FLAG_LDS_OUT_OF_ADDR_RANGE, KFDABI_FLAG_LDS_OUT_OF_ADDR_RANGE},
		{KFDTRAP_QUEUE_HW_FAILED, KFDABI_QUEUE_ERROR},
		{KFDTRAP_QUEUE_GONE, KFDABI_QUEUE_INVALID},
		{KFDTRAP_QUEUE_TYPE_COMPUTE, KFDABI_QUEUE_TYPE_COMPUTE},
		{KFDTRAP_QUEUE_TYPE_SDMA, KFDABI_QUEUE_TYPE_SDMA},
		{KFDTRAP_QUEUE_TYPE_COMPUTE_AQL, KFDABI_QUEUE_TYPE_COMPUTE_AQL},
		{KFDTRAP_QUEUE_TYPE_SDMA_XGMI, KFDABI_QUEUE_TYPE_SDMA_XGMI},
		{KFDTRAP_QUEUE_TYPE_UNKNOWN, KFDABI_QUEUE_TYPE_UNKNOWN},
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++)
		TEST_ROW_EQ(i, rows[i].public, rows[i].abi);
}

TEST_SUITE(kfdtrap_abi, TEST(general_arguments), TEST(debug_records), TEST(constants),
	   TEST(arguments_that_grew), TEST(public_constants_match));
