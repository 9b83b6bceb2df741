/** Who runs a command. */
import { userInfo } from 'node:os'
import type { Actor } from '../audit/actor.ts'

/** The operating system's user; a container may run as one that has a number only. */
export function commandActor(): Actor {
  return { kind: 'command', name: userName(), requestId: null, clientAddress: null }
}

function userName(): string {
  try {
    return userInfo().username
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`
  }
}
