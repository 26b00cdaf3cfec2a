-- SPDX-License-Identifier: MIT
-- What nvim-dap shows of a GPU that has stopped.
-- Environment: ADAPTER, PID, SOURCE, NVIM_DAP (its folder), EDITORS (ours); READY, which is made when all is there.
vim.opt.runtimepath:prepend(os.getenv("NVIM_DAP"))
vim.opt.runtimepath:append(os.getenv("EDITORS") .. "/nvim")
vim.opt.number = true
vim.opt.signcolumn = "yes"
vim.opt.shortmess:append("I")
vim.cmd("runtime plugin/dap.lua")
local dap = require("dap")
require("gpu-agent").setup({ command = os.getenv("ADAPTER") })

vim.ui.select = function(processes, _, choose)
  for _, process in ipairs(processes) do
    if tostring(process.pid) == os.getenv("PID") then
      choose(process)
    end
  end
end

local function show()
  local widgets = require("dap.ui.widgets")
  widgets.sidebar(widgets.scopes, { width = 58 }).open()
  widgets.sidebar(widgets.frames, { height = 10 }, "belowright split").open()
  dap.repl.open({ height = 14 })
  dap.repl.execute("groups")
end

dap.listeners.after.event_stopped["picture"] = function()
  vim.defer_fn(function()
    show()
    vim.defer_fn(function()
      io.open(os.getenv("READY"), "w"):close()
    end, 1500)
  end, 500)
end

-- The terminal comes later.
vim.api.nvim_create_autocmd("UIEnter", {
  once = true,
  callback = function()
    vim.cmd("edit " .. os.getenv("SOURCE"))
    vim.bo.filetype = "c"
    vim.cmd("syntax on")
    dap.run(dap.configurations.cpp[1])
  end,
})
