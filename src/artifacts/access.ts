/**
 * Checks whether a caller may upload or open an artifact, and creates the errors for callers that may not.
 */
import { ServiceError } from '../lib/errors.ts'
import type { ParentCaller, TokenCaller } from '../operations/operation.ts'
import type { ArtifactRow } from './store.ts'

export type ArtifactCaller = ParentCaller | TokenCaller

type Subject = Pick<ArtifactRow, 'id' | 'related_to'>

/** @throws ServiceError `insufficient_permissions` if the token was issued for another use. */
export function assertTokenUse(caller: ArtifactCaller, use: TokenCaller['use']): void {
  if (caller.kind === 'parent' || caller.use === use) return
  throw new ServiceError('insufficient_permissions', `This request needs a token for ${uses[use]}.`)
}

const uses: Readonly<Record<TokenCaller['use'], string>> = {
  upload: 'uploading the artifact',
  view: 'opening the artifact',
}

/**
 * Returns whether the caller may access the artifact, directly or through `related_to`. The artifact must
 * belong to the caller's tenant.
 */
export function grantsAccess(caller: ArtifactCaller, { id, related_to }: Subject): boolean {
  return caller.kind === 'parent' || caller.artifactId === id || caller.artifactId === related_to
}

/**
 * Rejects a token that was issued for a different artifact. `found` is undefined if no artifact has this id.
 * @throws ServiceError `insufficient_permissions`
 */
export function assertAccess(caller: ArtifactCaller, id: string, found: Subject | undefined): void {
  if (!grantsAccess(caller, found ?? { id, related_to: null })) throw wrongArtifact()
}

export function wrongArtifact(): ServiceError {
  return new ServiceError('insufficient_permissions', 'This token was issued for a different artifact.')
}

export function artifactNotFound(): ServiceError {
  return new ServiceError('not_found', 'Artifact not found.')
}

export function leaseStolen(): ServiceError {
  return locked('Another request has taken over this upload.')
}

export function uploadDeleted(): ServiceError {
  return new ServiceError('not_found', 'The upload was deleted during this request.')
}

export function locked(message: string): ServiceError {
  return new ServiceError('locked', message, { retryAfterSeconds: 1 })
}
