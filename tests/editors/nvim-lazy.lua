-- SPDX-License-Identifier: MIT
-- The configuration of a person who uses lazy.nvim.
-- Environment: LAZY_NVIM and NVIM_DAP, their folders; PLUGIN, ours; SPEC, what the documentation says to write.
-- The last line says as JSON what there is then.
vim.opt.runtimepath:prepend(os.getenv("LAZY_NVIM"))
local spec = assert(loadstring("return " .. os.getenv("SPEC")))()
assert(spec.dependencies[1] == "mfussenegger/nvim-dap", "the spec names nvim-dap")
spec.dir = os.getenv("PLUGIN")
spec.dependencies = { { "mfussenegger/nvim-dap", dir = os.getenv("NVIM_DAP") } }
local problems, notify = {}, vim.notify
vim.notify = function(text, level)
  if (level or 0) >= vim.log.levels.WARN then
    table.insert(problems, text)
  end
  return notify(text, level)
end
require("lazy").setup({ spec }, {
  root = vim.fn.stdpath("data") .. "/lazy",
  install = { missing = false },
  checker = { enabled = false },
  rocks = { enabled = false },
})
local dap = require("dap")
local seen = {
  problems = problems,
  adapter = dap.adapters["gpu-agent"],
  configurations = vim.tbl_map(function(configuration)
    return configuration.name
  end, dap.configurations.cuda or {}),
  commands = vim.tbl_filter(function(name)
    return vim.startswith(name, "GpuAgent")
  end, vim.tbl_keys(vim.api.nvim_get_commands({}))),
}
io.stdout:write(vim.json.encode(seen) .. "\n")
vim.cmd("qa!")
