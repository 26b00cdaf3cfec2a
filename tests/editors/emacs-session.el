;;; emacs-session.el --- a session of dape without a human  -*- lexical-binding: t; -*-
;; SPDX-License-Identifier: MIT
;; Environment: ADAPTER, PID, CORE.  Says words on standard output, "paused" first, and waits for a line after each;
;; the last line is what was seen, as JSON.  Names with two dashes are dape's own: its version is pinned.
(require 'dape)
(require 'json)
(load (expand-file-name "../../editors/emacs/gpu-agent.el" (file-name-directory load-file-name)))

;; Redefining a primitive would start the native compiler, which finds no libraries in a private tree.
(setq native-comp-enable-subr-trampolines nil)

;; dape kills the buffer of the adapter's errors, which on a busy machine is before the adapter has ended.
(setq kill-buffer-query-functions (remq 'process-kill-buffer-query-function kill-buffer-query-functions))

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

(defun refusal (&rest answer)
  "What is said when a choice is made while gpu-agentctl list is a program that says ANSWER, a command of the shell."
  (let ((program (make-temp-file "list")))
    (write-region (apply #'concat "#!/bin/sh\n" answer) nil program nil 'silent)
    (set-file-modes program #o700)
    (let ((gpu-agent-command program))
      (cl-letf (((symbol-function 'completing-read) (lambda (_ rows &rest _) (caar rows))))
        (condition-case problem
            (format "%s" (gpu-agent-read-process))
          (user-error (replace-regexp-in-string (regexp-quote program) "gpu-agentctl" (error-message-string problem))))))))

(defun see-refusals ()
  "What is said of processes that cannot be attached to."
  (list (refusal "echo '{\"processes\": [{\"pid\": 7, \"comm\": \"a\", \"vendor\": \"amd\", \"queues\": 1,"
                 " \"debuggable\": false, \"reason\": \"somebody traces it\"}]}'")
        (refusal "echo 'no agent listens' >&2; exit 4")))

(defun choose (command position)
  "Run COMMAND, take the line at POSITION of what it offers, and wait until the editor has gone there; that line."
  (let ((before (length stops)) taken)
    (cl-letf (((symbol-function 'completing-read) (lambda (_ rows &rest _) (setq taken (car (nth position rows))))))
      (funcall command)
      (wait-for (symbol-name command) (lambda () (> (length stops) before))))
    (wait-for "frame" (lambda () (let ((conn (dape--live-connection 'stopped t)))
                                   (and conn (dape--current-stack-frame conn)))))
    taken))

(defun see-lane (conn lane)
  "What CONN shows of the wave, if that is of LANE: dape asks for the stack after it has told of the stop."
  (when-let* ((frame (dape--current-stack-frame conn))
              (wave (cdr (assoc "Wave" (see-scopes conn frame)))))
    (and (equal lane (cdr (assoc "lane" wave))) wave)))

(defun see-groups ()
  "The list of groups; then the editor goes to the last one."
  (gpu-agent-groups)
  (let ((buffer (wait-for "groups" (lambda () (get-buffer "*gpu-agent-groups*")))) (before (length stops)))
    (with-current-buffer buffer
      (wait-for "rows" (lambda () (> (buffer-size) 0)))
      (note 'groups (buffer-substring-no-properties (point-min) (point-max)))
      (goto-char (point-max))
      (forward-line -1)
      (gpu-agent-groups-visit))
    (wait-for "group" (lambda () (> (length stops) before)))))

(defun buffer-in (mode)
  "The first buffer in MODE."
  (seq-find (lambda (b) (eq mode (buffer-local-value 'major-mode b))) (buffer-list)))

(defun go-to-enabled ()
  "Go to the first line about an exception that stops the GPU, if there is one."
  (goto-char (point-min))
  (while (and (not (eobp)) (not (plist-get (get-text-property (point) 'dape--info-exception) :enabled)))
    (forward-line 1))
  (not (eobp)))

(defun see-filters ()
  "Turn off each exception that stops the GPU, in the buffer of dape that lists them; what the adapter was told last."
  (let (sent)
    (cl-letf* ((request (symbol-function 'dape-request))
               ((symbol-function 'dape-request)
                (lambda (conn command arguments &rest rest)
                  (when (eq command :setExceptionBreakpoints)
                    (setq sent (list (plist-get arguments :filters))))
                  (apply request conn command arguments rest))))
      (with-current-buffer (wait-for "list of exceptions" (lambda () (buffer-in 'dape-info-breakpoints-mode)))
        (while (seq-find (lambda (exception) (plist-get exception :enabled)) dape--exceptions)
          (wait-for "exception that stops the GPU" #'go-to-enabled)
          (dape-info-exceptions-toggle))))
    (and sent (length (car sent)))))

(defun error-of (function)
  "What a person is told when FUNCTION cannot do it."
  (condition-case problem
      (format "%s" (funcall function))
    (user-error (error-message-string problem))))

(defun told ()
  "The line of the console about an exception."
  (when-let* ((text (buffer-with 'dape-repl-mode)))
    (and (string-match "^.*Exception: .*$" text) (match-string 0 text))))

(defun session ()
  "Attach, pause, look, continue, pause, quit."
  (note 'processes (mapcar (lambda (entry) (alist-get 'pid (cdr entry))) (gpu-agent-processes)))
  (note 'refusals (see-refusals))
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
    (note 'filters (see-filters))
    (cl-letf (((symbol-function 'message)
               (lambda (text &rest values)
                 (when (string-prefix-p "gpu-agent: " text)
                   (note 'control (apply #'format text values))))))
      (gpu-agent-take-control)
      (wait-for "control" (lambda () (assq 'control seen))))
    (tell "paused")
    (dape-continue conn)
    (wait-for "running" (lambda () (not (dape--live-connection 'stopped t))))
    (tell "running")
    (note 'told (wait-for "line about the exception" #'told))
    (tell "told")
    (pause conn)
    (note 'stops (vconcat (reverse stops)))
    (cl-letf (((symbol-function 'yes-or-no-p) #'always))
      (gpu-agent-hand-over))
    (wait-for "end" (lambda () (not (dape--live-connection 'parent t))))
    (note 'absent (error-of (lambda () (gpu-agent--start-debugger '("no-such-debugger" "-p" "1")))))
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
      (note 'nothing (error-of #'gpu-agent-hand-over))
      (see-groups)
      (note 'wave (choose #'gpu-agent-wave 1))
      (note 'lane (choose #'gpu-agent-lane 7))
      (note 'chosen (wait-for "lane that was chosen" (lambda () (see-lane conn "7"))))
      (dape-quit conn))
    (wait-for "end" (lambda () (not (dape--live-connection 'parent t))))))

(session)
(core-session)
(princ (concat (json-encode seen) "\n"))
