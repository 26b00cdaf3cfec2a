;;; emacs-picture.el --- what dape shows of a GPU that has stopped  -*- lexical-binding: t; -*-
;; SPDX-License-Identifier: MIT
;; Environment: ADAPTER, PID, SOURCE; READY, which is made when all is there.
(require 'dape)
(load (expand-file-name "../../editors/emacs/gpu-agent.el" (file-name-directory load-file-name)) nil t)

(setq native-comp-enable-subr-trampolines nil
      inhibit-startup-screen t
      gpu-agent-command (getenv "ADAPTER")
      dape-request-timeout 60
      dape-buffer-window-arrangement 'right)

(defun begin ()
  "Attach; the GPU has stopped by itself."
  (menu-bar-mode -1)
  (find-file (getenv "SOURCE"))
  (c-mode)
  (dape (dape--config-eval 'gpu-agent (list :pid (string-to-number (getenv "PID"))))))

(defun is-shown ()
  "Whether dape has the frames of the thread that stopped."
  (when-let* ((conn (dape--live-connection 'stopped t)))
    (and (dape--current-stack-frame conn)
         (seq-find (lambda (buffer)
                     (with-current-buffer buffer
                       (and (derived-mode-p 'dape-info-scope-mode) (> (buffer-size) 100))))
                   (buffer-list)))))

(defvar looking nil "The timer.")

(defun look ()
  "Make the file once all is shown."
  (when (is-shown)
    (cancel-timer looking)
    (run-at-time 1 nil (lambda () (write-region "" nil (getenv "READY") nil 'silent)))))

(add-hook 'emacs-startup-hook
          (lambda ()
            (begin)
            (setq looking (run-at-time 0.2 0.2 #'look))))
