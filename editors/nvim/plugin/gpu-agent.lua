-- SPDX-License-Identifier: MIT
-- Commands of gpu-agent.  The module is loaded by the first one that is used.
if vim.g.loaded_gpu_agent then
  return
end
vim.g.loaded_gpu_agent = true

for name, entry in pairs({
  GpuAgentGroups = { "choose_group", "Go to a group of waves" },
  GpuAgentWave = { "choose_wave", "Choose a wave of the group that is shown" },
  GpuAgentLane = { "choose_lane", "Choose a lane of the wave that is shown" },
  GpuAgentExceptions = { "choose_exceptions", "Choose which exceptions stop the GPU" },
  GpuAgentHandOver = { "hand_over", "End the session, and go on in rocgdb or cuda-gdb" },
  GpuAgentTakeControl = { "take_control", "Take control of the process from another client" },
}) do
  vim.api.nvim_create_user_command(name, function()
    require("gpu-agent")[entry[1]]()
  end, { desc = entry[2] })
end
