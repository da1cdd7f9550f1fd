"""Records a training loop; its public function is `longpole.record`."""
