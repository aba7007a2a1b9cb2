-- The entry of |vim.lsp.config| (Neovim 0.11 and newer): vim.lsp.enable('starling').
return require('starling.client').config()
