;;; gpu-agent.el --- GPU processes in dape  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT
;; Author: The authors of gpu-agent
;; Version: 0.1.0
;; Package-Requires: ((emacs "29.1") (dape "0.20"))
;; Keywords: tools, processes

;;; Commentary:

;; After (load "/usr/share/doc/gpu-agent/editors/emacs/gpu-agent.el")
;; `dape' has two more configurations: gpu-agent asks for one of the GPU
;; processes that the agent knows, gpu-agent-core for a core file.  With
;; :pid NUMBER in the prompt of dape nothing is asked.
;;
;; In a session `gpu-agent-groups' lists devices, queues and groups of
;; waves, `gpu-agent-wave' and `gpu-agent-lane' choose what is shown,
;; `gpu-agent-take-control' takes control from another client, and
;; `gpu-agent-hand-over' goes on in the debugger of the GPU's vendor.

;;; Code:

(require 'dape)
(require 'gud)
(require 'json)
(require 'seq)
(require 'tabulated-list)

(defgroup gpu-agent nil
  "GPU processes in dape."
  :group 'dape)

(defcustom gpu-agent-command "gpu-agentctl"
  "Program that is the debug adapter and knows the GPU processes."
  :type 'string)

(defun gpu-agent--call (&rest words)
  "Run gpu-agentctl with WORDS, which ask for JSON, and return its answer.
The error is in the words of gpu-agentctl."
  (let ((errors (make-temp-file "gpu-agent")))
    (unwind-protect
        (with-temp-buffer
          (let ((status (apply #'call-process gpu-agent-command nil (list t errors) nil words)))
            (unless (eq status 0)
              (erase-buffer)
              (insert-file-contents errors)
              (user-error "%s" (string-trim (if (= (buffer-size) 0)
                                                (format "%s %s: exit status %s" gpu-agent-command (car words) status)
                                              (buffer-string)))))
            (goto-char (point-min))
            (json-parse-buffer :object-type 'alist :array-type 'list :false-object nil)))
      (delete-file errors))))

(defun gpu-agent--list ()
  "What the agent knows of GPU processes, a list of alists."
  (alist-get 'processes (gpu-agent--call "list" "--json=short")))

(defun gpu-agent--why-not (process)
  "Why PROCESS cannot be debugged, or nil."
  (unless (alist-get 'debuggable process)
    (or (alist-get 'reason process) "the agent does not say why")))

(defun gpu-agent--describe (process)
  "A line about PROCESS."
  (let-alist process
    (concat (format "%d %s (%s, %d queues)" .pid .comm .vendor .queues)
            (when-let* ((reason (gpu-agent--why-not process)))
              (concat " - cannot be debugged: " reason)))))

(defun gpu-agent-processes ()
  "Alist of GPU processes: a line about each, and what the agent told of it.
Those that can be debugged come first."
  (let ((all (gpu-agent--list)))
    (mapcar (lambda (process) (cons (gpu-agent--describe process) process))
            (append (seq-remove #'gpu-agent--why-not all) (seq-filter #'gpu-agent--why-not all)))))

(defun gpu-agent-read-process ()
  "Ask for a GPU process, and return its number.
One that cannot be debugged is not taken; the error says why."
  (interactive)
  (let ((processes (gpu-agent-processes)))
    (unless processes
      (user-error "No process that you may see uses a GPU"))
    (let* ((process (cdr (assoc (completing-read "GPU process: " processes nil t) processes)))
           (reason (and process (gpu-agent--why-not process))))
      (cond ((not process)
             (user-error "No process was chosen"))
            (reason
             (user-error "Process %d cannot be debugged: %s; %s doctor %d says what to do" (alist-get 'pid process)
                         reason gpu-agent-command (alist-get 'pid process))))
      (alist-get 'pid process))))

(defun gpu-agent-source-folders ()
  "Where sources are looked for that are not where the compiler saw them."
  (vector (directory-file-name (expand-file-name (dape-cwd)))))

(add-to-list 'dape-configs
             '(gpu-agent
               command gpu-agent-command
               command-args ("dap")
               :type "gpu-agent"
               :request "attach"
               :pid gpu-agent-read-process
               :sourceFolders gpu-agent-source-folders))

(defun gpu-agent-read-core ()
  "Ask for a core file."
  (interactive)
  (expand-file-name (read-file-name "GPU core file: " nil nil t)))

(add-to-list 'dape-configs
             '(gpu-agent-core
               command gpu-agent-command
               command-args ("dap")
               :type "gpu-agent"
               :request "attach"
               :coreFile gpu-agent-read-core
               :sourceFolders gpu-agent-source-folders))

;;; What is shown

(defun gpu-agent--connection ()
  "The session of dape, or an error."
  (or (dape--live-connection 'last t)
      (user-error "There is no session")))

(defun gpu-agent--ask (conn command arguments done)
  "Send COMMAND with ARGUMENTS to CONN, and call DONE with the answer."
  (dape-request conn command arguments
                (lambda (body problem)
                  (if problem
                      (message "gpu-agent: %s" problem)
                    (funcall done body)))))

(defun gpu-agent--thread (conn)
  "The thread of CONN as an argument of a request, a plist."
  (when-let* ((thread (dape--thread-id conn)))
    (list :threadId thread)))

(defun gpu-agent--focus (conn &rest arguments)
  "Let the editor go to what ARGUMENTS name, as if CONN had stopped there."
  (gpu-agent--ask conn "gpuAgent/focus" (append arguments '(:reveal t)) #'ignore))

(defun gpu-agent--choose (prompt rows describe)
  "Ask with PROMPT for one of ROWS, each told by DESCRIBE."
  (let ((lines (mapcar (lambda (row) (cons (funcall describe row) row)) rows)))
    (cdr (assoc (completing-read prompt lines nil t) lines))))

(defun gpu-agent--true (value)
  "Whether VALUE is the truth of JSON."
  (eq value t))

(defun gpu-agent--wave-line (wave)
  "A line about WAVE."
  (let ((ref (plist-get wave :ref)))
    (format "%d:%d:%d workgroup %s" (plist-get ref :queue_id) (or (plist-get ref :unit) 0) (plist-get ref :index)
            (mapconcat #'number-to-string (plist-get ref :workgroup) ","))))

(defun gpu-agent--lane-line (lane)
  "A line about LANE."
  (concat (format "%d %s" (plist-get lane :lane) (if (gpu-agent--true (plist-get lane :active)) "active" "inactive"))
          (when-let* ((exception (plist-get lane :exception)))
            (concat " " exception))
          (when (gpu-agent--true (plist-get lane :shown)) " (shown)")))

;;;###autoload
(defun gpu-agent-wave ()
  "Show another of the first thousand waves of the group that is shown."
  (interactive)
  (let* ((conn (gpu-agent--connection)) (thread (gpu-agent--thread conn)))
    (gpu-agent--ask conn "gpuAgent/waves" (append thread '(:count 1000))
                    (lambda (body)
                      (when-let* ((wave (gpu-agent--choose (format "Wave, of %d: " (plist-get body :total))
                                                           (plist-get body :waves) #'gpu-agent--wave-line)))
                        (apply #'gpu-agent--focus conn :wave (plist-get wave :ref) thread))))))

;;;###autoload
(defun gpu-agent-lane ()
  "Show another lane of the wave that is shown."
  (interactive)
  (let* ((conn (gpu-agent--connection)) (thread (gpu-agent--thread conn)))
    (gpu-agent--ask conn "gpuAgent/lanes" thread
                    (lambda (body)
                      (when-let* ((lane (gpu-agent--choose "Lane: " (plist-get body :lanes) #'gpu-agent--lane-line)))
                        (apply #'gpu-agent--focus conn :lane (plist-get lane :lane) thread))))))

;;;###autoload
(defun gpu-agent-take-control ()
  "Take control of the process from the client that has it."
  (interactive)
  (gpu-agent--ask (gpu-agent--connection) "gpuAgent/takeControl" nil
                  (lambda (body)
                    (message "gpu-agent: this session has %scontrol"
                             (if (gpu-agent--true (plist-get body :control)) "" "no ")))))

;;; The vendor's debugger

(defconst gpu-agent--leave-seconds 10
  "An adapter that takes longer to leave is not waited for.")

(defun gpu-agent--release (pid)
  "Let the agent release process PID.
Return the command of its vendor's debugger."
  (alist-get 'command (gpu-agent--call "attach" (format "%s" pid) "--hand-over" "--json=short")))

(defun gpu-agent--start-debugger (command)
  "Start COMMAND, a list, which is the vendor's debugger."
  (unless (executable-find (car command))
    (user-error "The agent has let go of the process, which runs; %s is not in `exec-path': %s" (car command)
                (string-join command " ")))
  (gud-gdb (mapconcat #'shell-quote-argument (append (list (car command) "--fullname") (cdr command)) " ")))

;;;###autoload
(defun gpu-agent-hand-over ()
  "End the session, and go on in the debugger of the GPU's vendor.
A process has one debugger at a time.  Where another client of the
agent has it, that is said instead."
  (interactive)
  (let* ((conn (gpu-agent--connection))
         (pid (or (plist-get (dape--config conn) :pid) (user-error "A core file has no process")))
         (end (+ (float-time) gpu-agent--leave-seconds)))
    (dape-disconnect-quit conn)
    (while (and (jsonrpc-running-p conn) (< (float-time) end))
      (accept-process-output nil 0.05))
    (gpu-agent--start-debugger (gpu-agent--release pid))))

;;; Groups

(defvar-keymap gpu-agent-groups-mode-map
  :doc "Keys of the list of groups."
  "RET" #'gpu-agent-groups-visit)

(define-derived-mode gpu-agent-groups-mode tabulated-list-mode "GPU groups"
  "Devices, queues and groups of waves of a session."
  (setq tabulated-list-format [("Kind" 8 t) ("What" 0 nil)])
  (tabulated-list-init-header))

(defvar-local gpu-agent--groups-connection nil
  "Session that a list of groups is of.")

(defun gpu-agent-groups-visit ()
  "Go to the group at point."
  (interactive)
  (let ((thread (tabulated-list-get-id)))
    (unless (integerp thread)
      (user-error "Only groups can be gone to"))
    (gpu-agent--focus gpu-agent--groups-connection :threadId thread)))

(defun gpu-agent--rows (body)
  "Rows of a list of groups, of BODY, an answer to gpuAgent/groups."
  (append
   (mapcar (lambda (device) (list nil (vector "device" (format "%s %s" (plist-get device :gpu_id)
                                                               (or (plist-get device :name) "")))))
           (plist-get body :devices))
   (mapcar (lambda (queue) (list nil (vector "queue" (format "%s on %s" (plist-get queue :queue_id)
                                                             (plist-get queue :gpu_id)))))
           (plist-get body :queues))
   (mapcar (lambda (group)
             (list (plist-get group :threadId)
                   (vector (if (gpu-agent--true (plist-get group :faulting)) "faulting" "group")
                           (plist-get group :name))))
           (plist-get body :groups))))

(defun gpu-agent--show-groups (conn body)
  "Show BODY, the answer of CONN to gpuAgent/groups."
  (with-current-buffer (get-buffer-create "*gpu-agent-groups*")
    (gpu-agent-groups-mode)
    (setq gpu-agent--groups-connection conn
          tabulated-list-entries (gpu-agent--rows body)
          revert-buffer-function (lambda (&rest _) (gpu-agent-groups)))
    (tabulated-list-print t)
    (pop-to-buffer (current-buffer))))

;;;###autoload
(defun gpu-agent-groups ()
  "List devices, queues and groups of waves."
  (interactive)
  (let ((conn (gpu-agent--connection)))
    (gpu-agent--ask conn "gpuAgent/groups" nil (lambda (body) (gpu-agent--show-groups conn body)))))

(provide 'gpu-agent)
;;; gpu-agent.el ends here
