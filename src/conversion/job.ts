/** Defines the types that all conversions share: jobs, outcomes and rejections. */
import { ServiceError } from '../lib/errors.ts'
import type { Programs } from './programs.ts'
import type { Sandbox } from './sandbox.ts'

export type ConversionKind = 'video' | 'project' | 'captions' | 'thumbnail'

export interface Job {
  readonly programs: Programs
  readonly sandbox: Sandbox
  readonly source: string
  readonly sizeBytes: number
  readonly folder: string
  readonly signal: AbortSignal
  readonly onProgress: (share: number) => void
}

export interface MadeFile {
  readonly name: string
  readonly mediaType: string
}

export type Outcome =
  | { readonly made: MadeFile; readonly poster?: MadeFile }
  | { readonly unchanged: { readonly mediaType: string; readonly reason?: string } }

/**
 * `dangerous` content, such as a ZIP bomb, is deleted. `unconvertible` content is retried, and eventually
 * served as an attachment.
 */
export type Verdict = 'dangerous' | 'unconvertible'

/** An error caused by the file's content. Clients may see its message; its cause is only logged. */
export class ConversionRejection extends Error {
  override readonly name = 'ConversionRejection'
  readonly verdict: Verdict

  constructor(verdict: Verdict, reason: string, cause?: unknown) {
    super(reason, cause === undefined ? undefined : { cause })
    this.verdict = verdict
  }
}

export function isDiskFull(printed: string): boolean {
  return /No space left on device|ENOSPC|Disk quota exceeded|EDQUOT/.test(printed)
}

export function diskFull(cause: unknown): ServiceError {
  return new ServiceError('storage_full', 'The server has no disk space to convert files; try again later.', {
    cause,
  })
}

export function dangerous(reason: string): ConversionRejection {
  return new ConversionRejection('dangerous', reason)
}

export function unconvertible(reason: string, cause?: unknown): ConversionRejection {
  return new ConversionRejection('unconvertible', reason, cause)
}

export interface WorkerTask {
  readonly kind: 'thumbnail' | 'captions' | 'project'
  readonly source: string
  readonly folder: string
}

export type WorkerAnswer =
  | Outcome
  | { readonly refused: { readonly verdict: Verdict; readonly reason: string } }
