/** Exports visitors, what they see of conversations, and the feed that visitors and owners follow. */
export type { ChangedConversations } from './feed/changes.ts'
export { type Cursor, type FeedEvent, followConversation, parseCursor, renderCursor } from './feed/feed.ts'
export {
  findTurnVisitor,
  findVisitorId,
  memoizeTurnVisitor,
  moveToVisitor,
  type NamedIdentity,
  nameVisitor,
} from './feed/identified-visitors.ts'
export {
  isAttachment,
  isForVisitor,
  type ShownItem,
  toShownItem,
  toShownTurn,
  toStartedTurn,
  toVisitorItem,
  toVisitorMode,
} from './feed/render.ts'
export {
  findClientItem,
  findClientItemOfTurn,
  findLastBeforeNext,
  findLastItem,
  findLastPosition,
  findVisibleItem,
  findVisitorConversation,
  listModeChanges,
  listNewestVisible,
  listVersions,
  listVisibleItems,
  listVisitorConversations,
  type VisitorKey,
} from './feed/rows.ts'
export { renderUpload } from './feed/upload-text.ts'
export { assertSameText } from './handover/errors.ts'
export { UNKNOWN_OUTCOME } from './handover/open-calls.ts'
export { personOf } from './handover/requests.ts'
export {
  ClientId,
  type HandoverInput,
  MAX_MESSAGE,
  type MessageInput,
  Reason,
  type StoredMessage,
  Waiting,
} from './handover/schema.ts'
export { followWaiting } from './handover/waiting.ts'
export { findRatedTurn, listOwnRatings, rateTurn, unrateTurn } from './ratings/ratings.ts'
export { type NewRating, Rating, RatingDeleted, ratingFields } from './ratings/schema.ts'
export { findReplacedTurns, type Replacement } from './replacement/exchanges.ts'
export { removeExchange } from './replacement/removal.ts'
export { type Replacing, toReplacementItem } from './replacement/replacement-items.ts'
export { recordRead } from './requests.ts'
export { Replacing as ReplacingSchema, turnReason } from './schema.ts'
export type { ConversationRow, TurnRow } from './store.ts'
