/** Lets the visitor edit and remove messages that the server stores, and request other answers. */
import type { Attachment } from '../attachments/attachments.ts'
import type { MessageActions } from '../chat/chat.ts'
import type { Reply } from '../conversation.ts'
import { type ExchangeGroup, toGroups, turnsOf } from './exchanges.ts'
import type { ShownConversation } from './shown-conversation.ts'
import type { Replaces } from './view.ts'
import type { VisitorClient } from './visitor-client.ts'

interface Change {
  readonly text: string
  readonly files: readonly Attachment[]
  readonly replaces?: Replaces
}

interface MessageChangeParts {
  readonly getShown: () => ShownConversation
  /** @throws ChatFailure */
  readonly getClient: () => VisitorClient
  /** Reports why no turn can start. */
  readonly canStart: () => boolean
  readonly send: (change: Change) => void
  readonly showNotice: (thrown: unknown) => void
  /** Returns a reply that is shown. */
  readonly readReply: (id: string) => Reply | undefined
}

interface MessageChanges extends MessageActions {
  /** Requests another answer to the last message. */
  readonly regenerate: () => void
}

export function createMessageChanges(parts: MessageChangeParts): MessageChanges {
  const { getShown, getClient, canStart, send, showNotice, readReply } = parts

  function find(key: string): { groups: readonly ExchangeGroup[]; at: number } {
    const groups = toGroups(getShown().view.get())
    return { groups, at: groups.findIndex((group) => group.key === key && group.isChangeable) }
  }

  /** Removes an unsent message. Returns false if the server has stored it. */
  function drop({ question }: ExchangeGroup): boolean {
    if (question?.turn_id !== null) return false
    getShown().view.apply({ type: 'dropped', clientId: question.id })
    return true
  }

  return {
    edit(key, text) {
      const { groups, at } = find(key)
      const group = groups[at]
      if (group?.question === undefined || !canStart()) return false
      const { files = [], turn_id: turn } = group.question
      drop(group)
      const turns = turnsOf(groups.slice(at).flatMap((one) => [...one.earlier, one]))
      send({ text, files, ...(turn !== null && { replaces: { how: 'edited', turn, turns } }) })
      return true
    },
    remove(key) {
      const { groups, at } = find(key)
      const group = groups[at]
      if (group === undefined || drop(group)) return
      const shown = getShown()
      const left = shown.left()
      const turns = turnsOf([...group.earlier, group])
      getClient()
        .removeMessage(group.question?.turn_id ?? '')
        .then(
          () => left.aborted || shown.view.apply({ type: 'replaced', how: 'removed', turns, by: null }),
          (thrown) => left.aborted || showNotice(thrown),
        )
    },
    showVersion(replyId, step) {
      const { view } = getShown()
      const reply = readReply(replyId)
      if (reply?.versions === undefined) return
      const { before, after } = reply.versions
      const index = before.length + step
      const isNewest = index === before.length + after.length
      view.apply({ type: 'version', replyId, index: isNewest ? undefined : index })
    },
    regenerate() {
      const group = toGroups(getShown().view.get()).findLast(({ question }) => question !== undefined)
      const { turn_id: turn, text = '', files = [] } = group?.question ?? {}
      if (group === undefined || turn == null) return
      send({ text, files, replaces: { how: 'regenerated', turn, turns: turnsOf([group]) } })
    },
  }
}
