;;; person.el --- One who sits before Emacs in the tests -*- lexical-binding: t -*-

(require 'seq)

(defvar story-steps 0)
(defvar story-wait 30 "Seconds that anything may take.")
(defvar story-choice nil
  "What the user chooses: the start of a choice.  nil while nobody opened a list of choices.")

(defun story-step (what)
  (message "%2d %s" (setq story-steps (1+ story-steps)) what))

(defun story-until (what fact)
  "Wait until FACT returns non-nil, and return that.  WHAT names it."
  (let ((end (+ (float-time) story-wait)) found)
    (while (not (setq found (funcall fact)))
      (when (> (float-time) end)
        (error "Never so: %s\n%s\n%s" what (buffer-string)
               (with-current-buffer (messages-buffer) (buffer-string))))
      (accept-process-output nil 0.05))
    found))

;; A batch Emacs has no minibuffer to read from: this is the person before it.  A question that the
;; person did not ask for would take the keyboard from the text, and fails the test.
(defun story-choose (prompt choices &rest _)
  (unless story-choice
    (error "Nobody asked for `%s'" prompt))
  (let ((all (all-completions "" choices)))
    (or (seq-find (lambda (one) (string-prefix-p story-choice one)) all)
        (error "No `%s' among %S" story-choice all))))
(advice-add 'completing-read :override #'story-choose)

(defun story-select (at)
  "Select the text AT."
  (goto-char (point-min))
  (search-forward at)
  (push-mark (match-beginning 0) t t))

(defun story-hears (text)
  "Wait until a message has TEXT."
  (story-until (format "a message has `%s'" text)
               (lambda ()
                 (with-current-buffer (messages-buffer)
                   (string-search text (buffer-string))))))

(defun story-sees (text)
  (story-until (format "the buffer has `%s'" text)
               (lambda () (string-search text (buffer-string)))))

(defun story-on-disk ()
  (with-temp-buffer
    (insert-file-contents "price.py")
    (buffer-string)))

(defun story-no-window-opened ()
  "No message of the server has opened a window of warnings."
  (cl-assert (not (get-buffer "*Warnings*")) t
             (and (get-buffer "*Warnings*")
                  (with-current-buffer "*Warnings*" (buffer-string)))))

(provide 'person)
;;; person.el ends here
