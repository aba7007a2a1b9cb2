;;; with-eglot.el --- An evening with Starling in Emacs by eglot -*- lexical-binding: t -*-
;; emacs --batch -L . -l with-eglot.el PROJECT SERVER ARGUMENT...

(require 'package)
(package-initialize)
(require 'eglot)
(require 'python)
(require 'person)

(defun story-act (at choice)
  "Take the code action that begins with CHOICE at the text AT."
  (story-select at)
  (let ((story-choice choice)
        (transient-mark-mode t)
        (last-nonmenu-event ?x)) ; a key, not the mouse
    (call-interactively #'eglot-code-actions))
  (deactivate-mark))

(let* ((project (file-name-as-directory (pop command-line-args-left)))
       (server command-line-args-left)
       (eglot-server-programs `((python-mode . ,server)))
       (eglot-sync-connect story-wait)
       (eglot-confirm-server-initiated-edits nil)
       (eglot-autoshutdown nil)
       (make-backup-files nil)
       (create-lockfiles nil))
  (setq command-line-args-left nil)
  (find-file (concat project "price.py"))
  (python-mode)
  (buffer-enable-undo)

  (story-step "eglot and the server agree")
  (apply #'eglot (eglot--guess-contact))
  (let ((session (eglot-current-server)))
    (cl-assert (jsonrpc-running-p session))

    (story-step "a comment is a task, and a message says where its proposal waits")
    (story-act "# TODO" "Starling: do: say which")
    (story-hears "waits at price.py::label: code actions decide")

    (story-step "what is typed meanwhile stays")
    (goto-char (point-max))
    (insert "# höher 🙂\n")
    (undo-boundary)
    (cl-assert (string-search "# TODO" (story-on-disk)))

    (story-step "it is accepted by a code action")
    (story-act "def label" "Accept")
    (story-sees "return \"the price\"")
    (story-sees "# höher 🙂\n")

    (story-step "the buffer has it, the disk only after a save")
    (cl-assert (string-search "# TODO" (story-on-disk)))
    (save-buffer)
    (cl-assert (string-search "return \"the price\"" (story-on-disk)))
    (cl-assert (string-search "# höher 🙂\n" (story-on-disk)))

    (story-step "the end is told")
    (story-hears "Starling: Done")

    (story-step "undo is one step")
    (undo-boundary)
    (undo-only 1)
    (story-sees "# TODO: say which")
    (story-sees "# höher 🙂\n")
    (save-buffer)

    (story-step "no window of warnings has opened")
    (story-no-window-opened)

    (story-step "the server takes its leave")
    (eglot-shutdown session)
    (story-until "the server has ended" (lambda () (not (jsonrpc-running-p session))))
    (message "%d steps in Emacs %s with eglot" story-steps emacs-version)))
;;; with-eglot.el ends here
