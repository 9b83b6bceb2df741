/** Makes a parent key, and shows it once. */
import { TextInput } from '@mantine/core'
import { useState } from 'react'
import { DialogForm } from '../components/DialogForm.tsx'
import { createKey, type NewKey, useAfterwards } from './actions.ts'
import { NewKeyNotice } from './NewKeyNotice.tsx'

export function CreateKey({ onClose }: { readonly onClose: () => void }) {
  const [name, setName] = useState('')
  const [made, setMade] = useState<NewKey>()
  const afterwards = useAfterwards()
  if (made !== undefined) return <NewKeyNotice made={made} isShownOnce onClose={onClose} />
  const create = async () => {
    setMade(await createKey(name))
    await afterwards()
  }
  return (
    <DialogForm onSubmit={create} onCancel={onClose} action="Create" isReady={name.trim() !== ''}>
      <TextInput
        label="Name"
        description="So that you know later what it is for"
        placeholder="Web shop, production"
        data-autofocus
        maxLength={200}
        autoComplete="off"
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
      />
    </DialogForm>
  )
}
