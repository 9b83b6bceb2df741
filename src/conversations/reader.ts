/** Reads stored turns and items on behalf of the modules that run turns. */
import { unixSeconds } from '../lib/clock.ts'
import { ServiceError } from '../lib/errors.ts'
import type { Dependencies } from './dependencies.ts'
import type { ModeState } from './handover/errors.ts'
import { listOpenCalls } from './handover/open-calls.ts'
import type { ItemData } from './inline-data/item-data.ts'
import { findItem, type ItemRow, listItemsOfTurns } from './item-store.ts'
import { findConversation, findLastTurn, findTurn, type TurnKey, type TurnRow } from './store.ts'
import { conversationNotFound, IDEMPOTENCY_SECONDS } from './turns/acceptance.ts'
import { toStoreFailure } from './turns/failures.ts'
import {
  findMainTurn,
  type History,
  type HistoryLimits,
  readChain,
  readConversation,
  readVisitorConversation,
} from './turns/history.ts'

export type { StoredItem } from './items.ts'
export type { History, HistoryLimits } from './turns/history.ts'

type ReaderDependencies = Pick<Dependencies, 'config' | 'storage' | 'clock'> & { readonly data: ItemData }

export class ConversationReader {
  private readonly deps: ReaderDependencies

  constructor(deps: ReaderDependencies) {
    this.deps = deps
  }

  async findTurn(tenantId: string, key: TurnKey, value: string): Promise<TurnRow | undefined> {
    try {
      const opened = await this.deps.storage.find()
      return opened && (await findTurn(opened.read, tenantId, key, value))
    } catch (thrown) {
      throw toStoreFailure(thrown)
    }
  }

  /**
   * Returns the newest turn of a conversation's main line, and the conversation's revision and mode from just
   * before the turn was read.
   */
  async findMainTurn(
    tenantId: string,
    conversationId: string,
  ): Promise<{ readonly revision: number; readonly turn: TurnRow | undefined; readonly state: ModeState }> {
    const { read } = await this.deps.storage.open()
    // Reads the revision first, so that no turn starts from this state if the conversation changes in
    // between.
    const conversation = await findConversation(read, tenantId, conversationId)
    if (conversation === undefined) throw conversationNotFound(conversationId)
    const { revision, mode, assignee } = conversation
    return { revision, turn: await findMainTurn(read, conversationId), state: { mode, assignee } }
  }

  async findLastTurn(conversationId: string): Promise<TurnRow | undefined> {
    const { read } = await this.deps.storage.open()
    return findLastTurn(read, conversationId)
  }

  /** Returns the last turn that was not replaced. */
  async findCurrentTurn(conversationId: string): Promise<TurnRow | undefined> {
    const { read } = await this.deps.storage.open()
    return findLastTurn(read, conversationId, true)
  }

  async findItem(tenantId: string, id: string) {
    const opened = await this.deps.storage.find()
    const item = opened && (await findItem(opened.read, tenantId, id))
    return item && (await this.deps.data.restore([item]))[0]
  }

  async listTurnItems(turnId: string): Promise<ItemRow[]> {
    const { read } = await this.deps.storage.open()
    return this.deps.data.restore(await listItemsOfTurns(read, [turnId]))
  }

  /** Returns the ids of the turn's page tool calls that have no result. */
  async listOpenCalls(turn: TurnRow): Promise<string[]> {
    const { read } = await this.deps.storage.open()
    return listOpenCalls(read, turn)
  }

  /**
   * Returns the items that precede a new turn: those of the chain that ends with `previous`, or those of the
   * conversation's main line.
   */
  async readHistory(
    from: { readonly previous: TurnRow } | { readonly conversationId: string },
    limits: HistoryLimits,
  ): Promise<History> {
    const { read } = await this.deps.storage.open()
    const history =
      'previous' in from
        ? await readChain(read, from.previous, limits)
        : await readConversation(read, from.conversationId, limits)
    return { ...history, items: await this.deps.data.restoreItems(history.items) }
  }

  /**
   * Returns the items of a visitor's conversation that the next turn sends to the model. Omits the turns
   * `replaced`, which that turn replaces.
   */
  async readVisitorHistory(
    conversationId: string,
    limits: HistoryLimits,
    replaced: readonly string[] = [],
  ): Promise<History> {
    const { read } = await this.deps.storage.open()
    const history = await readVisitorConversation(read, conversationId, limits, replaced)
    return { ...history, items: await this.deps.data.restoreItems(history.items) }
  }

  /** @throws ServiceError if the conversation does not exist, or belongs to another agent or visitor */
  async assertUsable(
    tenantId: string,
    { agentId, visitorId }: { readonly agentId: string; readonly visitorId: string | undefined },
    id: string,
  ): Promise<void> {
    const opened = await this.deps.storage.find()
    const conversation = opened && (await findConversation(opened.read, tenantId, id))
    const isOthers = conversation?.visitor_id !== null && conversation?.visitor_id !== visitorId
    if (conversation === undefined || isOthers) throw conversationNotFound(id)
    if (conversation.agent_id === agentId || conversation.agent_id === '') return
    throw new ServiceError('invalid_value', 'conversation: belongs to another agent', {
      param: 'conversation',
      code: 'agent_mismatch',
    })
  }

  /** Whether a turn's events can no longer be streamed. */
  isReplayOver({ ended_at: endedAt }: TurnRow): boolean {
    const { replaySeconds } = this.deps.config.conversations
    return endedAt !== null && endedAt + replaySeconds < unixSeconds(this.deps.clock)
  }

  /** Whether a turn's idempotency key may be used again. */
  isKeyOver({ created_at: createdAt }: TurnRow): boolean {
    return createdAt + IDEMPOTENCY_SECONDS < unixSeconds(this.deps.clock)
  }
}
