/** How much room a disk has, and how much of it is not for files. */
import { statfs } from 'node:fs/promises'
import { ServiceError } from '../errors.ts'

/** Below either, nothing more is taken in. Security: 2.5. */
const LEAST_FREE_BYTES = 2 * 1024 ** 3
const LEAST_FREE_SHARE = 0.05

/** The room on a disk. */
export interface Space {
  readonly freeBytes: number
  readonly totalBytes: number
}

/** Reads the room on the disk a folder lies on. */
export type ReadSpace = (folder: string) => Promise<Space>

export async function readSpaceOf(folder: string): Promise<Space> {
  const { bavail, blocks, bsize } = await statfs(folder)
  return { freeBytes: bavail * bsize, totalBytes: blocks * bsize }
}

/** @throws ServiceError `storage_full` when so many bytes more would take the room that is to stay. */
export function assertRoom(space: Space, plannedBytes: number): void {
  if (!hasRoom(space, plannedBytes)) throw storageFull()
}

/** Whether so many bytes more leave the room that is to stay. */
export function hasRoom({ freeBytes, totalBytes }: Space, plannedBytes: number): boolean {
  return freeBytes - plannedBytes >= Math.max(LEAST_FREE_BYTES, totalBytes * LEAST_FREE_SHARE)
}

/** What the system says when a disk or a quota is full. */
const fullCodes: readonly unknown[] = ['ENOSPC', 'EDQUOT']

/** Whether the system said that a disk is full. */
export function isFull(error: unknown): boolean {
  return error instanceof Error && 'code' in error && fullCodes.includes(error.code)
}

/** Throws what was thrown; a disk that is full becomes the `storage_full` that the uploader is told. */
export function rethrow(error: unknown): never {
  throw isFull(error) ? storageFull(error) : error
}

/** The failure of a store that has no room. */
export function storageFull(cause?: unknown): ServiceError {
  return new ServiceError('storage_full', 'There is no room for more bytes here at the moment.', { cause })
}
