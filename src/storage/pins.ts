/** Pins stored files with hard links, so that a backup can still read them after the server deletes them. */
import { createReadStream } from 'node:fs'
import { link, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { hasCode } from '../lib/files.ts'
import { ignoreMissing, makeFolder } from './folder.ts'
import { findResumableFile, RESUMABLE_FOLDER } from './resumable-files.ts'

const PINS_FOLDER = 'held'
const MAX_TRIES = 3

export class PinnedBlobs {
  private readonly root: string
  private making: Promise<void> | undefined

  /** `root` is the store's folder; it need not exist. Only one process may pin at a time. */
  constructor(root: string) {
    this.root = root
  }

  /** Pins a committed or resumable blob. Returns false unless it has at least `sizeBytes` bytes. */
  async take(name: string, sizeBytes: number, uploadFence?: number): Promise<boolean> {
    this.making ??= makeFolder(join(this.root, PINS_FOLDER))
    await this.making
    // Retries, because an upload's next writer may rename its file between the search and the link.
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      if (await this.tryPin(name, uploadFence)) break
    }
    const found = await stat(this.pathOf(name)).catch(ignoreMissing)
    if (found === undefined) return false
    if (found.size >= sizeBytes) return true
    await rm(this.pathOf(name))
    return false
  }

  open(name: string, sizeBytes: number): AsyncIterable<Uint8Array> {
    if (sizeBytes === 0) return Readable.from([])
    return createReadStream(this.pathOf(name), { end: sizeBytes - 1, highWaterMark: 256 * 1024 })
  }

  /** Deletes all links, including those of a backup that was killed. */
  async release(): Promise<void> {
    await rm(join(this.root, PINS_FOLDER), { recursive: true, force: true })
  }

  /** Checks the uploads folder first, because a blob moves from there to the store and never back. */
  private async tryPin(name: string, uploadFence: number | undefined): Promise<boolean> {
    const committed = join(this.root, name)
    if (uploadFence === undefined) return this.pin(committed, name)
    const active = await findResumableFile(join(this.root, RESUMABLE_FOLDER), name, uploadFence)
    return (active !== undefined && (await this.pin(active.path, name))) || this.pin(committed, name)
  }

  private async pin(from: string, name: string): Promise<boolean> {
    try {
      await link(from, this.pathOf(name))
      return true
    } catch (error) {
      // The blob is already pinned, possibly while it was still resumable.
      if (hasCode(error, 'EEXIST')) return true
      ignoreMissing(error)
      return false
    }
  }

  private pathOf(name: string): string {
    return join(this.root, PINS_FOLDER, name)
  }
}
