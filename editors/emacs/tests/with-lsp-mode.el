;;; with-lsp-mode.el --- An evening with Starling in Emacs by lsp-mode -*- lexical-binding: t -*-
;; emacs --batch -L . -l with-lsp-mode.el PROJECT SERVER ARGUMENT...

(require 'package)
(package-initialize)
(require 'lsp-mode)
(require 'lsp-lens)
(require 'python)
(require 'person)

;; A message may be said while another is on the screen, and is then not in the buffer of messages.
(defvar story-heard nil "What the server said.")
(advice-add 'lsp--info :before
            (lambda (format &rest arguments)
              (push (apply #'format format arguments) story-heard)))

(defun story-hears (text)
  "Wait until the server has said TEXT."
  (story-until (format "the server says `%s'" text)
               (lambda () (seq-some (lambda (one) (string-search text one)) story-heard))))

(defun story-lenses ()
  "The lenses on the screen, one after the other."
  (mapconcat (lambda (overlay)
               (format "%s%s"
                       (or (overlay-get overlay 'before-string) "")
                       (or (overlay-get overlay 'after-string) "")))
             (overlays-in (point-min) (point-max))
             "\n"))

(defun story-act (at choice)
  "Take the code action that begins with CHOICE at the text AT."
  (story-select at)
  (let ((story-choice choice)
        (transient-mark-mode t))
    (call-interactively #'lsp-execute-code-action))
  (deactivate-mark))

(let* ((project (file-name-as-directory (pop command-line-args-left)))
       (server command-line-args-left)
       (lsp-auto-guess-root t)
       (lsp-enable-snippet nil)
       (lsp-lens-enable t)
       (lsp-restart 'ignore)
       (lsp-session-file (concat project ".git/lsp-session"))
       (make-backup-files nil)
       (create-lockfiles nil))
  (setq command-line-args-left nil)
  (lsp-register-client
   (make-lsp-client
    :new-connection (lsp-stdio-connection server)
    :major-modes '(python-mode)
    :server-id 'starling
    :add-on? t))
  (setq lsp-enabled-clients '(starling))
  (find-file (concat project "price.py"))
  (python-mode)
  (buffer-enable-undo)

  (story-step "lsp-mode and the server agree")
  (lsp)
  (story-until "the server is ready"
               (lambda ()
                 (seq-some (lambda (one) (eq (lsp--workspace-status one) 'initialized))
                           (lsp-workspaces))))

  (story-step "a comment is a task, and its proposal has lenses")
  (story-act "# TODO" "Starling: do: say which")
  (story-until "there are lenses"
               (lambda ()
                 (lsp-lens-refresh t)
                 (accept-process-output nil 0.2)
                 (string-search "Accept" (story-lenses))))
  (cl-assert (string-search "Says which" (story-lenses)))

  (story-step "what is typed meanwhile stays")
  (goto-char (point-max))
  (insert "# höher 🙂\n")
  (undo-boundary)

  (story-step "reason and diff are shown where they were asked for")
  (story-act "def label" "Diff")
  (story-hears "+    return \"the price\"")

  (story-step "it is accepted by a code action")
  (story-act "def label" "Accept")
  (story-sees "return \"the price\"")
  (story-sees "# höher 🙂\n")
  (story-hears "Starling: Done")

  (story-step "the buffer has it, the disk only after a save")
  (cl-assert (string-search "# TODO" (story-on-disk)))
  (save-buffer)
  (cl-assert (string-search "return \"the price\"" (story-on-disk)))

  (story-step "no window of warnings has opened")
  (story-no-window-opened)
  (with-current-buffer (messages-buffer)
    (cl-assert (not (string-search "Unknown" (buffer-string))) t (buffer-string)))

  (let ((process (lsp--workspace-proc (car (lsp-workspaces)))))
    (lsp-disconnect)
    (delete-process process))
  (message "%d steps in Emacs %s with lsp-mode" story-steps emacs-version))
;;; with-lsp-mode.el ends here
