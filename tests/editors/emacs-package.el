;;; emacs-package.el --- what those who review packages would say of ours  -*- lexical-binding: t; -*-
;; SPDX-License-Identifier: MIT
;; Environment: PACKAGE, its file; PACKAGES, where dape is; HOME, an empty folder.  Says as JSON what package-lint,
;; checkdoc and the compiler find, and what there is once it is installed.
(require 'package)
(require 'package-lint)
(require 'checkdoc)
(require 'json)

;; Redefining a primitive would start the native compiler, which finds no libraries in a private tree.
(setq native-comp-enable-subr-trampolines nil
      package-user-dir (expand-file-name "elpa" (getenv "HOME"))
      package-directory-list (list (getenv "PACKAGES")))

(defvar seen nil "What is told in the end.")

(with-current-buffer (find-file-noselect (getenv "PACKAGE"))
  (push (cons 'lint (vconcat (mapcar (lambda (found) (nth 3 found)) (package-lint-buffer)))) seen)
  (let* ((found nil)
         (checkdoc-create-error-function (lambda (text &rest _) (push text found) nil)))
    (checkdoc-current-buffer t)
    (push (cons 'doc (vconcat found)) seen))
  (kill-buffer))

(package-initialize)
(package-install-file (getenv "PACKAGE"))
(push (cons 'compiled (if (get-buffer "*Compile-Log*")
                          (with-current-buffer "*Compile-Log*" (buffer-string))
                        ""))
      seen)
(push (cons 'autoloads (vconcat (mapcar (lambda (command) (and (autoloadp (symbol-function command)) t))
                                        '(gpu-agent-groups gpu-agent-wave gpu-agent-lane gpu-agent-take-control
                                          gpu-agent-hand-over))))
      seen)
(require 'gpu-agent)
(push (cons 'configured (and (assq 'gpu-agent dape-configs) (assq 'gpu-agent-core dape-configs) t)) seen)
(princ (concat (json-encode seen) "\n"))
