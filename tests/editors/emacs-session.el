;;; emacs-session.el --- a session of dape without a human  -*- lexical-binding: t; -*-
;; SPDX-License-Identifier: MIT
;; Environment: ADAPTER, PID, CORE.  Says "paused" and "left" on standard output and waits for a line after each;
;; the last line is what was seen, as JSON.  Names with two dashes are dape's own: its version is pinned.
(require 'dape)
(require 'json)
(load (expand-file-name "../../editors/emacs/gpu-agent-dape.el" (file-name-directory load-file-name)))

;; Redefining a primitive would start the native compiler, which finds no libraries in a private tree.
(setq native-comp-enable-subr-trampolines nil)

(setq gpu-agent-command (getenv "ADAPTER")
      dape-request-timeout 60)

(defvar patience 60 "Seconds until a wait fails.")
(defvar stops nil "Reasons of the stops, last one first.")
(defvar seen nil "What is told in the end.")

(defun wait-for (what condition)
  "Let processes run until CONDITION gives something, which is returned; fail with WHAT."
  (let ((deadline (+ (float-time) patience)) result)
    (while (not (setq result (funcall condition)))
      (when (> (float-time) deadline)
        (princ (format "no %s in %d seconds\n" what patience))
        (kill-emacs 1))
      (accept-process-output nil 0.02))
    result))

(defun note (name value)
  "Remember VALUE as NAME."
  (push (cons name value) seen)
  value)

(defun ask (what function)
  "Call FUNCTION with a callback; give the callback's arguments as a list."
  (let (answer)
    (funcall function (lambda (&rest arguments) (setq answer (list arguments))))
    (car (wait-for what (lambda () answer)))))

(defun tell (word)
  "Say WORD to who runs this, who may look at the process until he answers."
  (princ (concat word "\n"))
  (read-string ""))

(defun buffer-with (mode)
  "Text of the first buffer in MODE."
  (when-let* ((buffer (seq-find (lambda (b) (eq mode (buffer-local-value 'major-mode b))) (buffer-list))))
    (with-current-buffer buffer
      (buffer-substring-no-properties (point-min) (point-max)))))

(cl-defmethod dape-handle-event :before (_conn (_event (eql stopped)) body)
  (push (plist-get body :reason) stops))

(defun pause (conn)
  "Stop the GPU of CONN and wait until dape shows where."
  (let ((before (length stops)))
    (dape-pause conn)
    (wait-for "stop" (lambda () (and (> (length stops) before)
                                     (dape--live-connection 'stopped t)
                                     (dape--current-stack-frame conn))))))

(defun see-scopes (conn frame)
  "Names and values of all that FRAME shows."
  (ask "scopes" (lambda (cb) (dape--scopes conn frame cb)))
  (mapcar (lambda (scope)
            (ask "variables" (lambda (cb) (dape--variables conn scope cb)))
            (cons (plist-get scope :name)
                  (mapcar (lambda (v) (cons (plist-get v :name) (plist-get v :value)))
                          (plist-get scope :variables))))
          (plist-get frame :scopes)))

(defun session ()
  "Attach, pause, look, continue, pause, quit."
  (note 'processes (mapcar #'cdr (gpu-agent-processes)))
  (dape (dape--config-eval 'gpu-agent (list :pid (string-to-number (getenv "PID")))))
  (let* ((conn (wait-for "thread" (lambda ()
                                    (let ((conn (dape--live-connection 'parent t)))
                                      (and conn (dape--thread-id conn) (dape--threads conn) conn)))))
         (frame (pause conn))
         (pc (plist-get frame :instructionPointerReference)))
    (note 'threads (mapcar (lambda (thread) (plist-get thread :name)) (dape--threads conn)))
    (note 'frame (plist-get frame :name))
    (note 'line (plist-get frame :line))
    (note 'pc pc)
    (note 'scopes (see-scopes conn frame))
    (note 'console (plist-get (car (ask "answer" (lambda (cb) (dape--evaluate-expression
                                                               conn (plist-get frame :id) "groups" "repl" cb))))
                              :result))
    (dape-memory pc)
    (note 'memory (wait-for "memory" (lambda ()
                                       (let ((text (buffer-with 'dape-memory-mode)))
                                         (and text (> (length text) 100) text)))))
    (dape-disassemble pc)
    (note 'instructions (wait-for "instructions" (lambda ()
                                                   (let ((text (buffer-with 'dape-disassemble-mode)))
                                                     (and text (string-match-p "s_" text) text)))))
    (tell "paused")
    (dape-continue conn)
    (wait-for "running" (lambda () (not (dape--live-connection 'stopped t))))
    (pause conn)
    (note 'stops (vconcat (reverse stops)))
    (cl-letf (((symbol-function 'yes-or-no-p) #'always))
      (dape-quit conn))
    (wait-for "end" (lambda () (not (dape--live-connection 'parent t))))
    (tell "left")))

(defun core-session ()
  "Open the core file, look, quit."
  (cl-letf (((symbol-function 'read-file-name) (lambda (&rest _) (getenv "CORE")))
            ((symbol-function 'yes-or-no-p) #'always))
    (dape (dape--config-eval 'gpu-agent-core (list :coreFile (gpu-agent-read-core))))
    (let ((conn (wait-for "core file" (lambda ()
                                        (let ((conn (dape--live-connection 'stopped t)))
                                          (and conn (dape--current-stack-frame conn) conn))))))
      (note 'core (plist-get (dape--current-stack-frame conn) :name))
      (dape-quit conn))
    (wait-for "end" (lambda () (not (dape--live-connection 'parent t))))))

(session)
(core-session)
(princ (concat (json-encode seen) "\n"))
