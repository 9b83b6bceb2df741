/** Keeps a pin on bytes in a store's folder, so that they can be read however soon their files are deleted. */
import { createReadStream } from 'node:fs'
import { link, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { ignoreMissing, makeFolder } from './folder.ts'
import { RESUMABLE_FOLDER } from './local-resumable.ts'

/** The folder, inside the store's own, of the second names. Only who deletes them gives the room back. */
const PINS_FOLDER = 'held'

/** Second names (hard links) of the files of one store. */
export class PinnedBlobs {
  private readonly root: string
  private making: Promise<void> | undefined

  /** `root` is the store's folder, which need not be there. One pin at a time. */
  constructor(root: string) {
    this.root = root
  }

  /** Holds on to a blob, be it whole or growing; false when it is not there with at least so many bytes. */
  async take(name: string, sizeBytes: number): Promise<boolean> {
    this.making ??= makeFolder(join(this.root, PINS_FOLDER))
    await this.making
    // In this order: what grows is moved among the whole, never back.
    for (const from of [join(this.root, RESUMABLE_FOLDER, name), join(this.root, name)]) {
      if (await this.pin(from, name)) break
    }
    const found = await stat(this.pathOf(name)).catch(ignoreMissing)
    if (found === undefined) return false
    if (found.size >= sizeBytes) return true
    await rm(this.pathOf(name))
    return false
  }

  /** The first so many bytes of a blob that is held. */
  open(name: string, sizeBytes: number): AsyncIterable<Uint8Array> {
    if (sizeBytes === 0) return none()
    return createReadStream(this.pathOf(name), { end: sizeBytes - 1, highWaterMark: 256 * 1024 })
  }

  /** Lets go of everything, also of what a process that was killed had held. */
  async release(): Promise<void> {
    await rm(join(this.root, PINS_FOLDER), { recursive: true, force: true })
  }

  private async pin(from: string, name: string): Promise<boolean> {
    try {
      await link(from, this.pathOf(name))
      return true
    } catch (error) {
      // Held already, by the same name or by the one it had while it grew.
      if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return true
      ignoreMissing(error)
      return false
    }
  }

  private pathOf(name: string): string {
    return join(this.root, PINS_FOLDER, name)
  }
}

async function* none(): AsyncIterable<Uint8Array> {}
