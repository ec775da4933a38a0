"""What the notebooks call: explorers, predictions and problems of each lesson. A notebook itself holds no logic."""
