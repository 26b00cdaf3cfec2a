;;; gpu-agent-dape.el --- GPU processes in dape  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT
;; Package-Requires: ((emacs "29.1") (dape "0.20"))

;;; Commentary:

;; (load "/usr/share/doc/gpu-agent/editors/emacs/gpu-agent-dape.el"), then M-x dape gpu-agent, which asks
;; for one of the GPU processes that the agent knows; gpu-agent-core asks for a core file.  With :pid NUMBER in dape's prompt it does not ask.

;;; Code:

(require 'dape)
(require 'json)

(defcustom gpu-agent-command "gpu-agentctl"
  "Program that is the debug adapter and knows the GPU processes."
  :type 'string
  :group 'dape)

(defun gpu-agent-processes ()
  "Alist of GPU processes that may be debugged: a line about each, and its number."
  (with-temp-buffer
    (let ((status (call-process gpu-agent-command nil '(t nil) nil "list" "--json=short")))
      (goto-char (point-min))
      (unless (eq status 0)
        (user-error "%s list: exit status %s" gpu-agent-command status))
      (let-alist (json-parse-buffer :object-type 'alist :array-type 'list :false-object nil)
        (mapcar (lambda (process)
                  (let-alist process
                    (cons (format "%d %s (%s, %d queues)" .pid .comm .vendor .queues) .pid)))
                (seq-filter (lambda (process) (alist-get 'debuggable process)) .processes))))))

(defun gpu-agent-read-process ()
  "Ask for a GPU process."
  (interactive)
  (let ((processes (gpu-agent-processes)))
    (unless processes
      (user-error "No GPU process that may be debugged"))
    (cdr (assoc (completing-read "GPU process: " processes nil t) processes))))

(add-to-list 'dape-configs
             '(gpu-agent
               command gpu-agent-command
               command-args ("dap")
               :type "gpu-agent"
               :request "attach"
               :pid gpu-agent-read-process))

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
               :coreFile gpu-agent-read-core))

(provide 'gpu-agent-dape)
;;; gpu-agent-dape.el ends here
