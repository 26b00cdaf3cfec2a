-- SPDX-License-Identifier: MIT
-- :checkhealth gpu-agent
local M = {}

function M.check()
  local health, command = vim.health, require("gpu-agent").command
  health.start("gpu-agent")
  if pcall(require, "dap") then
    health.ok("nvim-dap is found")
  else
    health.error("nvim-dap is not found", "Install https://codeberg.org/mfussenegger/nvim-dap")
  end
  if vim.fn.executable(command) == 0 then
    health.error(command .. " is not found", 'Name it: require("gpu-agent").setup({ command = "/path/to/gpu-agentctl" })')
    return
  end
  local version = vim.system({ command, "--version" }, { text = true }):wait()
  health.ok(vim.fn.exepath(command) .. ": " .. vim.trim(version.stdout))
  local processes, problem = require("gpu-agent.processes").list(command)
  if processes then
    health.ok(("the agent answers; it knows %d GPU processes"):format(#processes))
  else
    health.error(problem)
  end
end

return M
