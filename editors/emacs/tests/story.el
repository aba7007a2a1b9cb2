;;; story.el --- An evening with Starling in Emacs by eglot -*- lexical-binding: t -*-
;; emacs --batch -l story.el PROJECT SERVER ARGUMENT...

(require 'package)
(package-initialize)
(require 'eglot)
(require 'python)
(require 'seq)

(defvar story-steps 0)
(defvar story-wait 30 "Seconds that anything may take.")
(defvar story-asked nil "What the server asked the user, the last first.")
(defvar story-choice nil "What the user answers: the start of a choice.")

(defun story-step (what)
  (message "%2d %s" (setq story-steps (1+ story-steps)) what))

(defun story-until (what fact)
  "Wait until FACT returns non-nil, and return that."
  (let ((end (+ (float-time) story-wait)) found)
    (while (not (setq found (funcall fact)))
      (when (> (float-time) end)
        (error "Never so: %s\n%s\nasked: %S" what (buffer-string) story-asked))
      (accept-process-output nil 0.05))
    found))

;; A batch Emacs has no minibuffer to read from: this is the person before it.
(defun story-choose (prompt choices &rest _)
  (let ((all (all-completions "" choices)))
    (push (cons prompt all) story-asked)
    (or (seq-find (lambda (one) (string-prefix-p story-choice one)) all)
        (error "No `%s' among %S" story-choice all))))
(advice-add 'completing-read :override #'story-choose)

(defvar story-told nil "What was said in the echo area, the last first.")
(advice-add 'message :before
            (lambda (form &rest values)
              (when form (push (apply #'format form values) story-told))))

(defun story-act (at choice)
  "Take the code action that begins with CHOICE at the text AT."
  (goto-char (point-min))
  (search-forward at)
  (push-mark (match-beginning 0) t t)
  (let ((story-choice choice)
        (transient-mark-mode t)
        (last-nonmenu-event ?x)) ; a key, not the mouse
    (call-interactively #'eglot-code-actions))
  (deactivate-mark))

(defun story-sees (text)
  (story-until (format "the buffer has `%s'" text)
               (lambda () (string-search text (buffer-string)))))

(defun story-on-disk ()
  (with-temp-buffer
    (insert-file-contents "price.py")
    (buffer-string)))

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

    (story-step "a comment is a task, and its proposal is told, not asked about")
    (story-act "# TODO" "Starling: do: say which")
    (setq story-asked nil)
    (story-until "a proposal is told"
                 (lambda ()
                   (seq-find (lambda (one) (string-search "Starling #1 for price.py::label" one))
                             story-told)))
    (cl-assert (null story-asked))
    (cl-assert (not (seq-find (lambda (one) (string-search "starling/" one)) story-told)))

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

    (story-step "undo is one step")
    (undo-boundary)
    (undo-only 1)
    (story-sees "# TODO: say which")
    (story-sees "# höher 🙂\n")
    (save-buffer)

    (story-step "the server takes its leave")
    (eglot-shutdown session)
    (story-until "the server has ended" (lambda () (not (jsonrpc-running-p session))))
    (message "%d steps in Emacs %s with eglot" story-steps emacs-version)))
;;; story.el ends here
