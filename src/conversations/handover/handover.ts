/** Changes the mode of a conversation: the model answers, it waits for a person, or a person answers. */
import { defaultHandover, type HandoverRules, toSeconds } from '../../agents/definition-parts.ts'
import { type ConversationDatabase, mapConstraintError } from '../../db/open.ts'
import { unixSeconds } from '../../lib/clock.ts'
import { ServiceError } from '../../lib/errors.ts'
import type { CallVisitor } from '../../operations/operation.ts'
import type { Dependencies } from '../dependencies.ts'
import { findClientItem } from '../feed/rows.ts'
import type { ItemData } from '../inline-data/item-data.ts'
import { encodeItem, type ItemRow, type NewItem, titleOf } from '../item-store.ts'
import { type ConversationRow, findConversation } from '../store.ts'
import { conversationFull } from '../turns/acceptance.ts'
import type { StorageQuota } from '../turns/quota.ts'
import { prepareHandover } from '../webhooks/events.ts'
import { assertSameText, conversationMissing, wrongMode } from './errors.ts'
import { type ForModel, type Mode, renderTime, toModeItem, toTextItem } from './mode-items.ts'
import { changeMode, type ModeChange, type Outcome, storeMessage, TurnStarted } from './procedures.ts'
import type { StoppedTurns } from './stopped-turns.ts'
import { countWaiting } from './waiting-rows.ts'

export interface Place {
  readonly tenantId: string
  readonly conversationId: string
}

/** A person who answers conversations for the tenant. */
export interface Person {
  /** Identifies the person to owners: an email address or another name. */
  readonly assignee: string
  /** The name that visitors see; null for none. */
  readonly name: string | null
}

export interface Stored {
  readonly conversation: ConversationRow
  readonly item: ItemRow
}

type HandoverDependencies = Pick<
  Dependencies,
  'storage' | 'clock' | 'random' | 'bus' | 'webhooks' | 'findHandoverRules'
> & {
  readonly data: ItemData
  readonly quota: StorageQuota
  readonly stoppedTurns: StoppedTurns
  readonly notify: (id: string, ofTenant?: string) => void
}

interface Change {
  readonly from: readonly Mode[]
  readonly to: Mode
  readonly person?: Person
  readonly reason?: string | undefined
  readonly forModel?: ForModel
  readonly isAnswered?: boolean
  readonly isTakeover?: boolean
  readonly messages?: readonly NewItem[]
  readonly clientId?: string
  readonly wasDue?: number
}

/**
 * Maximum number of attempts for a change; with PostgreSQL, an attempt fails if a turn starts at the same
 * time.
 */
const MAX_TRIES = 10

export class Handover {
  private readonly deps: HandoverDependencies

  constructor(deps: HandoverDependencies) {
    this.deps = deps
  }

  /** Asks for a person. @throws ServiceError `wrong_mode` unless the model answers */
  async request(place: Place, reason?: string): Promise<ConversationRow> {
    const row = await this.find(place)
    return (await this.change(row, { from: ['model'], to: 'waiting', reason })).conversation
  }

  /** Lets a person answer, and cancels the running turn. @throws ServiceError `wrong_mode` */
  async takeOver(place: Place, person: Person): Promise<ConversationRow> {
    const row = await this.find(place)
    return (await this.change(row, toTakeover(person))).conversation
  }

  /** Lets the model answer again. @throws ServiceError `wrong_mode` unless a person answers */
  async handBack(place: Place): Promise<ConversationRow> {
    const row = await this.find(place)
    const forModel = { handedOverAt: row.mode_since, isAnswered: true }
    return (await this.change(row, { from: ['person'], to: 'model', forModel })).conversation
  }

  /**
   * Stores a person's message, and takes the conversation over first if no person answers it. @throws
   * ServiceError
   */
  async answer(
    place: Place,
    person: Person,
    {
      text,
      clientId,
      mayTakeOver,
    }: { readonly text: string; readonly clientId: string; readonly mayTakeOver: boolean },
  ): Promise<Stored> {
    const item = toTextItem({ author: 'person', text, name: person.name, clientId }, this.deps.random)
    const row = await this.find(place)
    const { read } = await this.deps.storage.open()
    // Checked before a turn is stopped, and again in the transaction.
    const earlier = await findClientItem(read, row.id, clientId)
    if (earlier !== undefined) return this.toStored(row, item, earlier, text, 'person')
    await this.assertRoom(row, item)
    const store = () =>
      this.store(row, { item, modes: ['person'], assignee: person.assignee, answerDue: null })
    const takeOver = () =>
      this.change(row, { ...toTakeover(person), isAnswered: true, messages: [item], clientId })
    const { conversation, repeated } = await (row.mode === 'person' || !mayTakeOver
      ? store()
      : takeOver().catch((error) => {
          // The same person has taken over with another request at the same time.
          const { mode, assignee } = (error as ServiceError).details?.handover ?? {}
          if (mode !== 'person' || assignee !== person.assignee) throw error
          return store()
        }))
    return this.toStored(conversation, item, repeated, text, 'person')
  }

  /**
   * Stores a visitor's message in a conversation that the model does not answer.
   * @throws ServiceError `wrong_mode` if the model answers
   */
  async ask(
    place: Place,
    visitor: CallVisitor,
    { item, text }: { readonly item: NewItem; readonly text: string },
  ): Promise<Stored> {
    const row = await this.find(place)
    await this.assertRoom(row, item)
    const { conversation, repeated } = await this.store(row, {
      ...{ item, modes: ['waiting', 'person'] },
      visitor,
      answerDue: await this.dueAfter(row),
    })
    return this.toStored(conversation, item, repeated, text, 'visitor')
  }

  /** Returns the rules of the conversation's agent, or the default rules. */
  async rulesOf({ tenant: tenantId, agent_id: agentId }: ConversationRow): Promise<HandoverRules> {
    const rules = agentId === '' ? undefined : await this.deps.findHandoverRules({ tenantId, agentId })
    return rules ?? defaultHandover
  }

  /** Whether a turn may call a tool or the model again; false once the turn has ended or a person answers. */
  async mayContinue(tenantId: string, turnId: string): Promise<boolean> {
    const { read } = await this.deps.storage.open()
    const found = await read
      .selectFrom('turns')
      .innerJoin('conversations', 'conversations.id', 'turns.conversation_id')
      .select(['turns.status', 'conversations.mode'])
      .where('turns.tenant', '=', tenantId)
      .where('turns.id', '=', turnId)
      .executeTakeFirst()
    return found?.status === 'in_progress' && found.mode !== 'person'
  }

  /** Asks for a person on behalf of a model, and returns the result for the model. */
  async requestByModel(place: Place, reason: string): Promise<string> {
    try {
      const { mode_since: since } = await this.request(place, reason)
      return `Handed over at ${renderTime(since)}: a person has been asked to answer here. Inform the user in one sentence, and do not promise a time.`
    } catch (error) {
      if (!(error instanceof ServiceError) || error.details.handover === undefined) throw error
      return 'A person has already been asked to answer here.'
    }
  }

  /** Counts the conversations of all tenants that wait for a person. */
  async countWaiting(): Promise<number> {
    const opened = await this.deps.storage.find()
    return opened === undefined ? 0 : countWaiting(opened.read)
  }

  /** Changes the mode of conversations in which no person has answered in time. */
  async endWaits(): Promise<void> {
    const opened = await this.deps.storage.find()
    if (opened === undefined) return
    const due = await opened.read
      .selectFrom('conversations')
      .selectAll()
      .where('answer_due', '<=', unixSeconds(this.deps.clock))
      .orderBy('answer_due')
      .limit(100)
      .execute()
    for (const row of due) await this.endWait(row)
  }

  private async endWait(row: ConversationRow): Promise<void> {
    const { whenNobody } = await this.rulesOf(row)
    const wasDue = row.answer_due ?? 0
    const message = toTextItem({ author: 'service', text: whenNobody }, this.deps.random)
    const change: Change =
      row.mode === 'person'
        ? { from: ['person'], to: 'waiting', wasDue }
        : {
            ...{ from: ['waiting'], to: 'model', wasDue, messages: [message] },
            forModel: { handedOverAt: row.mode_since, isAnswered: false },
          }
    await this.change(row, change).catch((error) => {
      // Another replica, a person or the owner has already changed or deleted the conversation.
      if (!(error instanceof ServiceError) || !['conflict', 'not_found'].includes(error.reason)) throw error
    })
  }

  private async find({ tenantId, conversationId }: Place): Promise<ConversationRow> {
    const opened = await this.deps.storage.find()
    const row = opened && (await findConversation(opened.read, tenantId, conversationId))
    if (row === undefined) throw conversationMissing(conversationId)
    return row
  }

  /** @throws ServiceError `storage_full` */
  private async assertRoom({ tenant }: ConversationRow, item: NewItem): Promise<void> {
    const used = await this.deps.quota.assertRoom(tenant)
    used?.add(encodeItem(item).bytes)
  }

  private async dueAfter(row: ConversationRow): Promise<number> {
    return unixSeconds(this.deps.clock) + toSeconds((await this.rulesOf(row)).timeout)
  }

  private async change(row: ConversationRow, change: Change) {
    const { clock, random, storage, bus, stoppedTurns, webhooks } = this.deps
    const { from, to, person, reason, forModel, messages = [], isTakeover, clientId } = change
    // Checked before a turn is stopped, and again in the transaction.
    if (!from.includes(row.mode)) throw wrongMode(row)
    const nowSeconds = unixSeconds(clock)
    const assignee = person?.assignee ?? null
    const entry = {
      mode: to,
      since: nowSeconds,
      assignee,
      name: person?.name ?? null,
      reason: reason ?? null,
    }
    const awaitsAnswer = to !== 'model' && !change.isAnswered
    const input: ModeChange = {
      ...{ tenantId: row.tenant, conversationId: row.id, from, to, assignee, nowSeconds, clientId },
      answerDue: awaitsAnswer ? await this.dueAfter(row) : null,
      wasDue: change.wasDue,
      items: [toModeItem(entry, forModel, random), ...messages].map(encodeItem),
      deliveries: await prepareHandover(webhooks, { ...aboutOf(row), to, messages }),
    }
    const database = await storage.open()
    const outcome = isTakeover
      ? await stoppedTurns.storeWith(row.id, async (stopped) => {
          const result = await runChange(database, { ...input, stopped })
          return { isStored: result.status === 'done', result }
        })
      : await runChange(database, input)
    const { conversation, repeated } = assertDone(outcome, row.id)
    if (outcome.status === 'done') {
      for (const id of outcome.cancelled) {
        this.deps.notify(id)
        bus.publish('cancel-turn', id)
      }
      this.notify(conversation)
    }
    return { conversation, repeated }
  }

  private async store(
    row: ConversationRow,
    message: Pick<Parameters<typeof storeMessage.run>[1], 'modes' | 'answerDue' | 'assignee' | 'visitor'> & {
      readonly item: NewItem
    },
  ) {
    const { item, ...rest } = message
    const { data, storage, clock, webhooks } = this.deps
    const { run } = await storage.open()
    const deliveries = await prepareHandover(webhooks, { ...aboutOf(row), messages: [item] })
    const encoded = await data.encode([item])
    let isStored = false
    try {
      const outcome = await run(storeMessage, {
        ...{ ...rest, tenantId: row.tenant, conversationId: row.id, nowSeconds: unixSeconds(clock) },
        title: titleOf([item]),
        item: encoded.items[0] as Parameters<typeof storeMessage.run>[1]['item'],
        data: encoded.data,
        deliveries,
      })
      isStored = outcome.status === 'done'
      const done = assertDone(outcome, row.id)
      this.notify(done.conversation)
      return done
    } finally {
      if (!isStored) await data.discard(encoded.data)
    }
  }

  /**
   * Returns the stored item. @throws ServiceError if an earlier request stored another text with the same
   * client id
   */
  private async toStored(
    conversation: ConversationRow,
    item: NewItem,
    repeated: ItemRow | undefined,
    text: string,
    author: 'person' | 'visitor',
  ): Promise<Stored> {
    if (repeated !== undefined) {
      assertSameText(repeated, { text, author })
      return { conversation, item: repeated }
    }
    const { read } = await this.deps.storage.open()
    const row = await read.selectFrom('items').selectAll().where('id', '=', item.id).executeTakeFirst()
    if (row === undefined) throw conversationMissing(conversation.id)
    return { conversation, item: row }
  }

  /**
   * Wakes the followers of a conversation and of the tenant's waiting conversations, and the webhook
   * deliverer.
   */
  private notify({ id, tenant }: ConversationRow): void {
    this.deps.webhooks?.wake()
    this.deps.notify(id, tenant)
    this.deps.notify(tenant)
  }
}

function aboutOf({ id, tenant, agent_id: agentId }: ConversationRow) {
  return { conversationId: id, tenantId: tenant, agentId }
}

function toTakeover(person: Person) {
  return { from: ['model', 'waiting'], to: 'person', person, isTakeover: true } as const
}

async function runChange({ run }: ConversationDatabase, change: ModeChange): Promise<Outcome> {
  for (let tries = 1; ; tries++) {
    try {
      return await run(changeMode, change)
    } catch (error) {
      const isRetryable = error instanceof TurnStarted || mapConstraintError(error) === 'unique'
      if (!isRetryable || tries === MAX_TRIES) throw error
    }
  }
}

/** @throws ServiceError unless the change was stored, now or by an earlier request */
function assertDone(
  outcome: Outcome,
  id: string,
): { readonly conversation: ConversationRow; readonly repeated: ItemRow | undefined } {
  switch (outcome.status) {
    case 'missing':
      throw conversationMissing(id)
    case 'full':
      throw conversationFull()
    case 'wrong_mode':
      throw wrongMode(outcome)
    case 'repeated':
      return { conversation: outcome.conversation, repeated: outcome.item }
    case 'done':
      return { conversation: outcome.conversation, repeated: undefined }
  }
}
