/** Who may upload and open an artifact. Decision: 9. */
import { ServiceError } from '../lib/errors.ts'
import type { ParentCaller, TokenCaller } from '../operations/operation.ts'

/** An owner, with a key or in the console, or whoever has a token. An owner may do everything with what is theirs. */
export type ArtifactCaller = ParentCaller | TokenCaller

/** What decides whether a token is for an artifact. */
interface Subject {
  readonly id: string
  readonly related_to: string | null
}

/** @throws ServiceError `insufficient_permissions` for a token that is for something else. */
export function assertTokenUse(caller: ArtifactCaller, use: TokenCaller['use']): void {
  if (caller.kind === 'parent' || caller.use === use) return
  throw new ServiceError('insufficient_permissions', `This needs a token for ${uses[use]}.`)
}

const uses: Readonly<Record<TokenCaller['use'], string>> = {
  upload: 'uploading the artifact',
  view: 'opening the artifact',
}

/** Whether the caller may do with that artifact what their credential is for. It must be one of their tenant's. */
export function grantsAccess(caller: ArtifactCaller, { id, related_to }: Subject): boolean {
  return caller.kind === 'parent' || caller.artifactId === id || caller.artifactId === related_to
}

/** The same for an id of which there may be no artifact. @throws ServiceError `insufficient_permissions` */
export function assertAccess(caller: ArtifactCaller, id: string, found: Subject | undefined): void {
  if (!grantsAccess(caller, found ?? { id, related_to: null })) throw wrongArtifact()
}

export function wrongArtifact(): ServiceError {
  return new ServiceError('insufficient_permissions', 'This token is for another artifact.')
}

export function artifactNotFound(): ServiceError {
  return new ServiceError('not_found', 'There is no such artifact.')
}

/** What somebody is told who was writing until another client, or the same one again, went on. */
export function leaseStolen(): ServiceError {
  return locked('Another request goes on with this upload.')
}

/** What somebody is told who wanted to write into what is gone by now. */
export function uploadDeleted(): ServiceError {
  return new ServiceError('not_found', 'The upload was removed meanwhile.')
}

export function locked(message: string): ServiceError {
  return new ServiceError('locked', message, { retryAfterSeconds: 1 })
}
