/** Gives a key a new secret; the old one may go on working for a while. */
import { NativeSelect } from '@mantine/core'
import { useState } from 'react'
import { DialogForm } from '../components/DialogForm.tsx'
import { type NewKey, useAfterwards } from './actions.ts'
import { NewKeyNotice } from './NewKeyNotice.tsx'

const overlaps = [
  { value: '0', label: 'Stops at once' },
  { value: '3600', label: 'Works for an hour more' },
  { value: '86400', label: 'Works for a day more' },
  { value: '604800', label: 'Works for a week more' },
  { value: '2592000', label: 'Works for 30 days more' },
]

interface RotateKeyProps {
  readonly rotate: (overlapSeconds: number) => Promise<NewKey>
  /** Nobody can read the new secret again. */
  readonly isShownOnce: boolean
  readonly onClose: () => void
}

export function RotateKey({ rotate, isShownOnce, onClose }: RotateKeyProps) {
  const [overlap, setOverlap] = useState('86400')
  const [made, setMade] = useState<NewKey>()
  const afterwards = useAfterwards()
  if (made !== undefined) return <NewKeyNotice made={made} isShownOnce={isShownOnce} onClose={onClose} />
  const submit = async () => {
    setMade(await rotate(Number(overlap)))
    await afterwards()
  }
  return (
    <DialogForm onSubmit={submit} onCancel={onClose} action="Make a new secret" isDangerous={overlap === '0'}>
      <NativeSelect
        label="The present secret"
        description="Time to put the new one wherever the present one is used"
        data={overlaps}
        value={overlap}
        onChange={(event) => setOverlap(event.currentTarget.value)}
      />
    </DialogForm>
  )
}
