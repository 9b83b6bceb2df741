/** Asks for confirmation, then deletes a conversation on the server. */
import { useState } from 'react'
import { type Failure, toChatFailure } from '../failure.ts'
import { useFrame } from '../frame-context.ts'
import { Question } from './Question.tsx'

/** `onEnd` receives whether the conversation was deleted. If deleting fails, the dialog stays open. */
export function DeleteQuestion({ id, onEnd }: { id: string; onEnd: (isDeleted: boolean) => void }) {
  const { session, language } = useFrame()
  const { strings } = language
  const [failure, setFailure] = useState<Failure>()

  async function remove(): Promise<void> {
    setFailure(undefined)
    try {
      await session.stored.remove(id)
      onEnd(true)
    } catch (thrown) {
      setFailure(toChatFailure(thrown).failure)
    }
  }

  return (
    <Question
      title={strings.deleteQuestion}
      text={strings.deleteLoss}
      yes={strings.delete}
      no={strings.cancel}
      failure={failure}
      onAnswer={(isYes) => (isYes ? void remove() : onEnd(false))}
    />
  )
}
