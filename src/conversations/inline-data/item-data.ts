/**
 * Stores the long strings of items (images, audio, files and tool results) as blobs, in the store of uploaded
 * files.
 */
import { randomUUID } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import type { Logger } from 'pino'
import type { ConversationStorage } from '../../db/open.ts'
import { type Blobs, wholeOf } from '../../storage/blobs.ts'
import { type EncodedItem, type EncodedItems, encodeItem, type ItemRow, type NewItem } from '../item-store.ts'
import { listDataBlobs, type NewData, toUploadName, uploadIn } from './data-rows.ts'
import { MAX_INLINE_LENGTH, mapData } from './inline-data.ts'

/**
 * Prefix of the text that replaces a string stored as a blob; the blob's name follows. An item can refer only
 * to its own blobs, so a client cannot read others by sending this text.
 */
const MARK = 'parley-data:'
const DROPPED_AT_ONCE = 100

export interface StoredResult {
  /** Replaces the result in the item. */
  readonly mark: string
  /** Bytes by which the item's JSON text would be longer with the result instead of the mark. */
  readonly bodyBytes: number
  readonly data: NewData
}

interface Deps {
  readonly storage: ConversationStorage
  readonly log: Pick<Logger, 'warn'>
  readonly openBlobs: () => Promise<Pick<Blobs, 'stage' | 'open' | 'delete'>>
  readonly deleteUploads: (ids: readonly string[]) => Promise<void>
}

export class ItemData {
  private readonly deps: Deps

  constructor(deps: Deps) {
    this.deps = deps
  }

  /**
   * Encodes items, and stores their long strings as blobs. The bytes of an item include its data. Call
   * `discard` if the rows are not stored.
   * @throws ServiceError `storage_full`
   */
  async encode(items: readonly NewItem[]): Promise<EncodedItems> {
    const data: NewData[] = []
    const encoded: EncodedItem[] = []
    try {
      for (const item of items) encoded.push(await this.encodeOne(item, data))
    } catch (error) {
      await this.discard(data)
      throw error
    }
    return { items: encoded, data }
  }

  /**
   * Stores a tool's result as a blob of an item. Returns undefined if the result is short or not well-formed
   * Unicode, or if the blob cannot be stored; the result then remains in the row. Call `discard` if the rows
   * are not stored.
   */
  async storeResult(itemId: string, result: string): Promise<StoredResult | undefined> {
    if (result.length <= MAX_INLINE_LENGTH || !result.isWellFormed()) return undefined
    const name = randomUUID()
    const bytes = Buffer.from(result)
    try {
      await this.storeBlob(name, bytes)
    } catch (error) {
      this.deps.log.warn({ err: error }, "could not store a tool's result as a blob; it is stored in its row")
      return undefined
    }
    const mark = MARK + name
    const bodyBytes = Buffer.byteLength(JSON.stringify(result)) - Buffer.byteLength(JSON.stringify(mark))
    return { mark, bodyBytes, data: { name, item_id: itemId, bytes: bytes.length } }
  }

  /**
   * Deletes blobs whose rows were not stored. Skips blobs that have rows, because a transaction may be
   * committed even if its answer is lost. Never rejects, because the sweep of orphans deletes what remains.
   */
  async discard(data: readonly NewData[]): Promise<void> {
    const names = data.map(({ name }) => name).filter((name) => uploadIn(name) === undefined)
    if (names.length === 0) return
    try {
      const owned = await this.listOwned(names)
      const blobs = await this.deps.openBlobs()
      for (const name of names) if (!owned.has(name)) await blobs.delete(name).catch(() => {})
    } catch (error) {
      this.deps.log.warn(
        { err: error },
        'could not delete the data of unstored items; the orphan sweep will retry',
      )
    }
  }

  /** Replaces the marks in the bodies of rows with the data. */
  async restore<Row extends Pick<ItemRow, 'id' | 'body'>>(rows: readonly Row[]): Promise<Row[]> {
    const bodies = rows.map(({ body }) => (body.includes(MARK) ? JSON.parse(body) : undefined))
    const restored = await this.restoreItems(bodies.filter((body) => body !== undefined))
    let next = 0
    return rows.map((row, index) =>
      bodies[index] === undefined ? row : { ...row, body: JSON.stringify(restored[next++]) },
    )
  }

  async restoreItems<Item extends { readonly id: string }>(items: readonly Item[]): Promise<Item[]> {
    const marked = items.filter((item) => namesIn(item).length > 0)
    if (marked.length === 0) return [...items]
    const texts = await this.readTexts(marked.map(({ id }) => id))
    return items.map((item) => mapData(item, (text) => texts.get(`${item.id}:${nameIn(text)}`) ?? text))
  }

  async listOwned(names: readonly string[]): Promise<ReadonlySet<string>> {
    const opened = await this.deps.storage.find()
    return opened === undefined ? new Set() : listDataBlobs(opened.read, names)
  }

  /** Returns which of these uploads of visitors the items of conversations contain. */
  async listUploads(ids: readonly string[]): Promise<ReadonlySet<string>> {
    const owned = await this.listOwned(ids.map(toUploadName))
    return new Set(ids.filter((id) => owned.has(toUploadName(id))))
  }

  /** Returns the conversation that contains an upload of a visitor. */
  async findUploadConversation(id: string): Promise<string | undefined> {
    const opened = await this.deps.storage.find()
    const row = await opened?.read
      .selectFrom('item_data')
      .select('conversation_id')
      .where('name', '=', toUploadName(id))
      .executeTakeFirst()
    return row?.conversation_id
  }

  /** Deletes the data of deleted items. Never rejects, because maintenance tries again. */
  async dropDeleted(): Promise<void> {
    try {
      await this.drop()
    } catch (error) {
      this.deps.log.warn({ err: error }, 'could not delete the data of deleted items; maintenance will retry')
    }
  }

  /** Safe to repeat, also at the same time in several processes. */
  private async drop(): Promise<void> {
    const opened = await this.deps.storage.find()
    if (opened === undefined) return
    for (;;) {
      const rows = await opened.write
        .selectFrom('item_data')
        .select('name')
        .where('is_deleted', '=', 1)
        .limit(DROPPED_AT_ONCE)
        .execute()
      if (rows.length === 0) return
      const names = rows.map(({ name }) => name)
      const blobs = await this.deps.openBlobs()
      await this.deps.deleteUploads(names.flatMap((name) => uploadIn(name) ?? []))
      for (const name of names) if (uploadIn(name) === undefined) await blobs.delete(name)
      await opened.write.deleteFrom('item_data').where('name', 'in', names).execute()
    }
  }

  private async encodeOne(item: NewItem, data: NewData[]): Promise<EncodedItem> {
    await this.addUploads(item, data)
    const whole = encodeItem(item)
    if (whole.bytes <= MAX_INLINE_LENGTH) return whole
    const found: { readonly name: string; readonly bytes: Buffer }[] = []
    const body = mapData(item.body, (text) => {
      // A string that is not well-formed cannot be encoded exactly in UTF-8.
      if (text.length <= MAX_INLINE_LENGTH || !text.isWellFormed()) return text
      const name = randomUUID()
      found.push({ name, bytes: Buffer.from(text) })
      return MARK + name
    })
    if (found.length === 0) return whole
    for (const { name, bytes } of found) {
      data.push({ name, item_id: item.id, bytes: bytes.length })
      await this.storeBlob(name, bytes)
    }
    return { ...whole, body: JSON.stringify(body) }
  }

  /** Adds the uploads of an item, except those that an earlier item of the conversation contains. */
  private async addUploads({ id, uploadIds = [] }: NewItem, data: NewData[]): Promise<void> {
    if (uploadIds.length === 0) return
    const known = await this.listUploads(uploadIds)
    for (const one of uploadIds)
      if (!known.has(one)) data.push({ name: toUploadName(one), item_id: id, bytes: 0 })
  }

  private async storeBlob(name: string, bytes: Buffer): Promise<void> {
    const blobs = await this.deps.openBlobs()
    const staged = await blobs.stage(toAsync(bytes), bytes.length, name)
    await staged.commit()
  }

  /** Maps `<item id>:<blob>` to the blob's text. */
  private async readTexts(itemIds: readonly string[]): Promise<Map<string, string>> {
    const { read } = await this.deps.storage.open()
    const rows = await read
      .selectFrom('item_data')
      .select(['name', 'item_id', 'bytes'])
      .where('item_id', 'in', itemIds)
      .execute()
    const blobs = await this.deps.openBlobs()
    const stored = rows.filter(({ name }) => uploadIn(name) === undefined)
    const texts = new Map<string, string>()
    const readOne = async ({ name, item_id: id, bytes }: (typeof rows)[number]) => {
      texts.set(`${id}:${name}`, (await buffer(await blobs.open(name, wholeOf(bytes)))).toString())
    }
    await Promise.all(stored.map(readOne))
    return texts
  }
}

function nameIn(text: string): string | undefined {
  return text.startsWith(MARK) ? text.slice(MARK.length) : undefined
}

function namesIn(item: object): string[] {
  const names: string[] = []
  mapData(item, (text) => {
    const name = nameIn(text)
    if (name !== undefined) names.push(name)
    return text
  })
  return names
}

async function* toAsync(bytes: Uint8Array): AsyncGenerator<Uint8Array, void, void> {
  yield bytes
}
