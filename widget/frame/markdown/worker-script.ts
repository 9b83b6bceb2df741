/** This script again, as the script of a thread: the build makes one file, and the policy allows no other. */

/** Whether this is the thread, not the page. */
export const isWorker = typeof document === 'undefined'

interface ScriptPolicy {
  createScriptURL(url: string): string
}

interface PolicyFactory {
  createPolicy(name: string, rules: ScriptPolicy): ScriptPolicy
}

/** Starts the thread. @throws where the browser refuses. Security: 2.11 (Trusted Types). */
export function startOwnWorker(): Worker {
  const { trustedTypes } = globalThis as { trustedTypes?: PolicyFactory }
  policy ??= trustedTypes?.createPolicy('parley-own-script', { createScriptURL: () => import.meta.url })
  // A trusted address stands for a string in every place that takes one.
  return new Worker(policy === undefined ? import.meta.url : policy.createScriptURL(''), { type: 'module' })
}

let policy: ScriptPolicy | undefined
